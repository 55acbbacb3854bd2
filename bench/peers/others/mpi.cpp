// SPDX-License-Identifier: BSD-3-Clause
// MPI: point-to-point messages between two ranks. Started by mpirun: the rank is the side, and the
// CPUs of both are the words behind "--".
#include "peers/links/posted.hpp"

#include <cstdlib>

#include <mpi.h>

namespace peers
{

namespace
{

class Mpi
{
public:
    using Request = MPI_Request;

    Mpi() = default;
    ~Mpi() { MPI_Finalize(); }
    Mpi(const Mpi &) = delete;
    Mpi &operator=(const Mpi &) = delete;

    bool open(const Options &options, std::string &error)
    {
        int size = 0;
        if (MPI_Init(nullptr, nullptr) != MPI_SUCCESS ||
            MPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS || size != 2)
            error = "mpirun -np 2 starts this program";
        m_peer = 1 - static_cast<int>(options.side);
        return error.empty();
    }

    bool post_send(void *data, size_t bytes, Request &request)
    {
        return MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, m_peer, 0, MPI_COMM_WORLD,
                         &request) == MPI_SUCCESS;
    }

    bool post_receive(void *data, size_t room, Request &request)
    {
        return MPI_Irecv(data, static_cast<int>(room), MPI_BYTE, m_peer, 0, MPI_COMM_WORLD,
                         &request) == MPI_SUCCESS;
    }

    int done(Request &request)
    {
        int flag = 0;
        return MPI_Test(&request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS ? flag : -1;
    }

private:
    int m_peer = 0;
};

/// mpirun gives both ranks one command line: each takes what is its own.
int run(int argc, char **argv)
{
    if (argc == 2) // --version: no rank needs it
        return run_peer<PostedLink<Mpi>>(argc, argv);
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    std::vector<char *> words(argv, argv + argc);
    std::string side = rank ? rank : "";
    std::string cpu;
    for (size_t i = 0; i + 2 < words.size(); i++)
        if (std::string_view(words[i]) == "--")
            cpu = words[side == "1" ? i + 2 : i + 1];
    std::string side_name = "--side";
    std::string cpu_name = "--cpu";
    words.insert(words.begin() + 1, {side_name.data(), side.data(), cpu_name.data(), cpu.data()});
    return run_peer<PostedLink<Mpi>>(static_cast<int>(words.size()), words.data());
}

} // namespace

} // namespace peers

int main(int argc, char **argv)
{
    return peers::run(argc, argv);
}
