// SPDX-License-Identifier: BSD-3-Clause
// Images that are drawn where they go: straight into receive buffers of the peer, without an mbuf
// that is copied there. D is a folder of your own. Compile with -DALLOW_EXPERIMENTAL_API.
//
//     image_cpp -l 0 --in-memory --no-pci --vdev=raw_plx_ntb0,cable=$D/cable -- show 5
//     image_cpp -l 1 --in-memory --no-pci --vdev=raw_plx_ntb0,cable=$D/cable -- draw 5
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <span>
#include <string_view>

#include <rte_eal.h>
#include <rte_mbuf.h>

#include <ntbmsg.hpp>

namespace
{

constexpr const char *device = "raw_plx_ntb0";
constexpr uint16_t queue = 0;
constexpr size_t width = 100, height = 60; ///< pixels of a byte
constexpr size_t image_bytes = width * height;
constexpr size_t most_rooms = (image_bytes + 63) / 64; ///< the smallest receive buffers have 64 B
constexpr uint32_t peer_timeout_ms = 30'000;

std::byte pixel(size_t at, unsigned long image)
{
    return static_cast<std::byte>(at / width + at % width + image);
}

class Host
{
public:
    int run(bool draws, unsigned long images)
    {
        int rc = endpoint_.open(device);
        if (rc == 0)
            rc = endpoint_.wait_connected(peer_timeout_ms);
        for (unsigned long i = 0; rc == 0 && i < images; ++i)
            rc = draws ? draw(i) : show(i);
        return rc;
    }

private:
    bool too_late() const { return std::chrono::steady_clock::now() > deadline_; }

    /// Rooms are stored to and never loaded from: on a card they are write-combining memory. What
    /// is not committed goes back by itself.
    int draw(unsigned long image)
    {
        ntbmsg::QueueRooms<most_rooms> rooms;
        if (const int rc = reserve(rooms); rc != 0)
            return rc;
        size_t at = 0;
        for (size_t room = 0; at < image_bytes; ++room)
            for (std::byte &to : rooms[room].first(std::min(rooms[room].size(), image_bytes - at)))
                to = pixel(at++, image);
        const ntbmsg_meta number{.data = image, .flags = 0, .reserved = 0};
        const int sent = rooms.commit(static_cast<uint32_t>(image_bytes), number);
        return sent == 1 ? 0 : sent;
    }

    /// Enough rooms for an image; there are none while the peer has not received the last ones. How
    /// large one is, is the peer's choice.
    int reserve(ntbmsg::QueueRooms<most_rooms> &rooms)
    {
        while (!too_late()) {
            const int got = rooms.reserve(ntbmsg::Queue(endpoint_.get(), queue), needed_);
            if (got < 0)
                return got;
            if (got == 0)
                continue;
            needed_ = (image_bytes + rooms[0].size() - 1) / rooms[0].size();
            if (rooms.size() >= needed_)
                return 0;
        }
        return -ETIMEDOUT;
    }

    int show(unsigned long image)
    {
        rte_mbuf *m = nullptr;
        ntbmsg_meta meta{};
        int got = 0;
        while ((got = ntbmsg_queue_recv_burst(endpoint_.get(), queue, &m, &meta, 1)) == 0)
            if (too_late())
                return -ETIMEDOUT;
        if (got < 0)
            return got;
        const bool whole = meta.data == image && is_whole(*m, image);
        rte_pktmbuf_free(m);
        std::cout << "image " << image << (whole ? " is whole\n" : " is not what was drawn\n");
        return whole ? 0 : -EPROTO;
    }

    static bool is_whole(const rte_mbuf &message, unsigned long image)
    {
        if (message.pkt_len != image_bytes)
            return false;
        size_t at = 0;
        for (const rte_mbuf *part = &message; part != nullptr; part = part->next) {
            const std::span bytes(rte_pktmbuf_mtod(part, const std::byte *), part->data_len);
            if (!std::all_of(bytes.begin(), bytes.end(),
                             [&](std::byte b) { return b == pixel(at++, image); }))
                return false;
        }
        return true;
    }

    const std::chrono::steady_clock::time_point deadline_ =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(2 * peer_timeout_ms);
    size_t needed_ = 1;
    ntbmsg::Endpoint endpoint_; ///< its close waits until the peer has received the last image
};

int run(std::span<char *> arguments)
{
    const std::string_view role = arguments.size() == 3 ? arguments[1] : "";
    const unsigned long images = role.empty() ? 0 : std::strtoul(arguments[2], nullptr, 10);
    if ((role != "draw" && role != "show") || images == 0) {
        std::cerr << "usage: image_cpp [EAL options] -- draw|show IMAGES\n";
        return -EINVAL;
    }
    const int rc = Host().run(role == "draw", images);
    if (rc != 0)
        std::cerr << "image_cpp: " << std::strerror(-rc) << '\n';
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
