// SPDX-License-Identifier: BSD-3-Clause
// The same board as board_c, whose hosts can share it, in C++20; D is a folder of your own. Compile
// with -DALLOW_EXPERIMENTAL_API.
//
//     board_cpp -l 0 --in-memory --no-pci --vdev=raw_plx_ntb0,cable=$D/cable -- share
//     board_cpp -l 1 --in-memory --no-pci --vdev=raw_plx_ntb0,cable=$D/cable -- write 5
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <span>
#include <string>
#include <string_view>

#include <rte_eal.h>

#include <ntbmsg.hpp>

namespace
{

constexpr const char *device = "raw_plx_ntb0";
constexpr uint16_t port = 8;
constexpr unsigned long most_lines = 100;
constexpr uint32_t peer_timeout_ms = 30'000;

/// What the board looks like at both hosts.
struct Board {
    uint64_t count; ///< lines, added up by the writer
    std::array<char[64], most_lines> lines;
};

/// Owners go in the opposite order of their declaration.
class Host
{
public:
    /// @param lines  0: share
    int run(unsigned long lines)
    {
        ntbmsg::EndpointOptions options;
        options.workers = 1;
        int rc = lines == 0 ? listener_.open(port) : 0; // before the writer can be there
        if (rc == 0)
            rc = endpoint_.open(device, options);
        if (rc == 0)
            rc = cq_.create(256);
        if (rc == 0)
            rc = endpoint_.wait_connected(peer_timeout_ms);
        if (rc != 0)
            return rc;
        worker_ = ntbmsg::Worker::of(endpoint_, 0);
        return lines == 0 ? share() : write_board(lines);
    }

private:
    bool too_late() const { return std::chrono::steady_clock::now() > deadline_; }

    ntbmsg::ChannelOptions with_queue() const
    {
        ntbmsg::ChannelOptions options;
        options.cq = cq_.get();
        return options;
    }

    int await_completion(ntbmsg_completion &completion)
    {
        while (cq_.poll(std::span(&completion, 1)) != 1) {
            if (channel_.state() != NTBMSG_CHANNEL_OPEN)
                return -ESHUTDOWN;
            if (too_late())
                return -ETIMEDOUT;
            worker_.poll();
        }
        return completion.status;
    }

    /// Posts one operation and waits for its completion; its own memory is used until then.
    int operate(ntbmsg_work work, ntbmsg_completion &completion)
    {
        work.flags = NTBMSG_WORK_SIGNAL | NTBMSG_WORK_CONFIRM;
        int rc;
        while ((rc = channel_.post_burst(std::span(&work, 1))) == 0 && !too_late())
            worker_.poll();
        return rc == 1 ? await_completion(completion) : rc == 0 ? -ETIMEDOUT : rc;
    }

    int share()
    {
        constexpr uint32_t rights = NTBMSG_RIGHT_WRITE | NTBMSG_RIGHT_READ | NTBMSG_RIGHT_ATOMIC;
        ntbmsg::Region region;
        int rc = region.alloc(endpoint_, sizeof(Board), rights);
        ntbmsg_request request;
        while (rc == 0 && listener_.poll(worker_, request) != 1) {
            worker_.poll();
            rc = too_late() ? -ETIMEDOUT : 0;
        }
        if (rc == 0)
            rc = channel_.accept(request, with_queue());
        if (rc == 0)
            rc = send_token(region);
        if (rc == 0)
            rc = read_board(*reinterpret_cast<const Board *>(region.memory().data()));
        channel_.reset();
        return rc != 0 ? rc : region.revoke();
    }

    /// A token is bytes, to be sent by any way: here as a message of the channel itself.
    int send_token(const ntbmsg::Region &region)
    {
        ntbmsg_region_token token;
        ntbmsg::Message message = ntbmsg::Message::from(endpoint_.pool());
        int rc = message ? region.token(token) : -ENOMEM;
        if (rc != 0)
            return rc;
        std::memcpy(message.append(sizeof(token)).data(), &token, sizeof(token));
        while ((rc = channel_.send(message)) == 0 && !too_late())
            worker_.poll();
        return rc == 1 ? 0 : rc == 0 ? -ETIMEDOUT : rc;
    }

    int receive_token(ntbmsg_region_token &token)
    {
        ntbmsg::Message message;
        int got;
        while ((got = channel_.recv(message)) == 0)
            if (too_late())
                return -ETIMEDOUT;
        if (got < 0)
            return got;
        if (message.data().size() != sizeof(token))
            return -EPROTO;
        std::memcpy(&token, message.data().data(), sizeof(token));
        return 0;
    }

    /// The word of each write says which line is there now.
    int read_board(const Board &board)
    {
        ntbmsg_completion completion;
        int rc;
        while ((rc = await_completion(completion)) == 0) {
            if (completion.op != NTBMSG_OP_RECV_IMM || completion.imm >= most_lines)
                return -EPROTO;
            const char *line = board.lines[completion.imm];
            std::cout << "notified of line " << completion.imm << ": "
                      << std::string_view(line, strnlen(line, sizeof(board.lines[0]))) << '\n';
        }
        if (rc != -ESHUTDOWN)
            return rc;
        std::cout << board.count << " lines were counted\n"; // the writer is done
        return 0;
    }

    int write_board(unsigned long lines)
    {
        ntbmsg_region_token token;
        int rc = channel_.connect(worker_, port, with_queue());
        if (rc == 0)
            rc = channel_.wait_open(peer_timeout_ms);
        if (rc == 0)
            rc = receive_token(token);
        if (rc != 0)
            return rc;
        {
            ntbmsg::Remote remote;
            rc = remote.open(channel_, token);
            if (rc == 0)
                rc = write_lines(remote, lines);
        }
        channel_.shutdown();
        // This host leaves when the other one has seen the end.
        while (rc == 0 && channel_.state() == NTBMSG_CHANNEL_SHUT && !too_late())
            worker_.poll();
        return rc;
    }

    int write_lines(const ntbmsg::Remote &remote, unsigned long lines)
    {
        for (unsigned long i = 0; i < lines; ++i)
            if (const int rc = write_line(remote, i); rc != 0)
                return rc;
        static Board copy;
        const ntbmsg_sge to{.address = &copy, .bytes = sizeof(copy), .reserved = 0};
        ntbmsg_work read{};
        read.remote = remote.get();
        read.op = NTBMSG_OP_READ;
        read.sges = &to;
        read.sge_count = 1;
        ntbmsg_completion completion;
        const int rc = operate(read, completion);
        if (rc == 0)
            std::cout << "the peer counted " << copy.count
                      << " lines, the last one is: " << copy.lines[lines - 1] << '\n';
        return rc;
    }

    int write_line(const ntbmsg::Remote &remote, unsigned long i)
    {
        char line[64] = {};
        const std::string text = "this is line " + std::to_string(i);
        std::memcpy(line, text.data(), std::min(text.size(), sizeof(line) - 1));
        const ntbmsg_sge from{.address = line, .bytes = sizeof(line), .reserved = 0};
        ntbmsg_work write{};
        write.remote = remote.get();
        write.op = NTBMSG_OP_WRITE_IMM;
        write.offset = offsetof(Board, lines) + i * sizeof(line);
        write.sges = &from;
        write.sge_count = 1;
        write.imm = static_cast<uint32_t>(i);
        ntbmsg_completion completion;
        if (const int rc = operate(write, completion); rc != 0)
            return rc;
        ntbmsg_work count{};
        count.remote = remote.get();
        count.op = NTBMSG_OP_FETCH_ADD;
        count.offset = offsetof(Board, count);
        count.operand = 1;
        const int rc = operate(count, completion);
        return rc == 0 && completion.value != i ? -EPROTO : rc;
    }

    const std::chrono::steady_clock::time_point deadline_ =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(2 * peer_timeout_ms);
    ntbmsg::Endpoint endpoint_;
    ntbmsg::Listener listener_;
    ntbmsg::Worker worker_;
    ntbmsg::CompletionQueue cq_;
    ntbmsg::Channel channel_;
};

int run(std::span<char *> arguments)
{
    const std::string_view role = arguments.size() >= 2 ? arguments[1] : "";
    const unsigned long lines =
        arguments.size() == 3 && role == "write" ? std::strtoul(arguments[2], nullptr, 10) : 0;
    if (lines > most_lines || (lines == 0 && (role != "share" || arguments.size() != 2))) {
        std::cerr << "usage: board_cpp [EAL options] -- share | write LINES (1 to " << most_lines
                  << ")\n";
        return -EINVAL;
    }
    const int rc = Host().run(lines);
    if (rc != 0)
        std::cerr << "board_cpp: " << std::strerror(-rc) << '\n';
    return rc;
}

} // namespace

int main(int argc, char **argv)
{
    const int used = rte_eal_init(argc, argv);
    if (used < 0)
        return EXIT_FAILURE;
    const int rc = run(std::span(argv + used, static_cast<size_t>(argc - used)));
    rte_eal_cleanup();
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
