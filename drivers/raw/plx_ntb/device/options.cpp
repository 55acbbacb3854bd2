// SPDX-License-Identifier: BSD-3-Clause
#include "device/options.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include <rte_kvargs.h>
#include <rte_mbuf_core.h>

#include <ranges.hpp>
#include <sized.hpp>

#include "queue/wire.hpp"
#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

struct Parse {
    const char *device;
    Options *options;
};

int bad_value(const Parse &parse, const char *key, const char *value, const char *expected)
{
    PLX_INIT_LOG(ERR, "%s: devarg %s=%s: expected %s\n", parse.device, key,
                 value == nullptr ? "" : value, expected);
    return -EINVAL;
}

/// A range in words, with what else is asked of the number.
class RangeText
{
public:
    RangeText(const ntb::Range &range, const char *more)
    {
        std::snprintf(text_, sizeof(text_), "%u %s %u%s", range.low,
                      range.high - range.low == 1 ? "or" : "to", range.high, more);
    }
    operator const char *() const { return text_; }

private:
    char text_[80];
};

bool to_number(const char *text, const ntb::Range &range, uint32_t *out)
{
    if (text == nullptr || text[0] < '0' || text[0] > '9')
        return false;
    char *end = nullptr;
    errno = 0;
    const unsigned long long value = std::strtoull(text, &end, 0);
    if (errno != 0 || *end != '\0' || value < range.low || value > range.high)
        return false;
    *out = static_cast<uint32_t>(value);
    return true;
}

/// A devarg that is a number in a range.
struct NumberKey {
    const char *key;
    uint32_t Geometry::*in_geometry;
    uint32_t Options::*in_options;
    ntb::Range range;
    const char *more = ""; ///< its unit, and what else is asked of it
    bool of_twin = false;  ///< a card has no such devarg
};

namespace ranges = ntb::ranges;
static_assert(ranges::queues.high == wire::qp_count_max);
static_assert(ranges::ring_lines.low == wire::ring_lines_min &&
              ranges::ring_lines.high == wire::ring_lines_max);
static_assert(ranges::buf_bytes.low == wire::buf_bytes_min &&
              ranges::buf_bytes.high <= wire::buf_bytes_max &&
              ranges::buf_bytes.high % wire::line_bytes == 0);
static_assert(ranges::buf_bytes.high + RTE_PKTMBUF_HEADROOM <= UINT16_MAX, "of rte_mbuf.buf_len");
static_assert(ranges::queue_buffers.low == wire::buffers_per_line &&
              ranges::queue_buffers.high == queue::buffers_target_max);
static_assert(ranges::inline_max.low == wire::head_payload_bytes &&
              ranges::inline_max.high == wire::inline_bytes_max);
static_assert(ranges::max_message.high == wire::message_max);

constexpr NumberKey number_keys[] = {
    {"queues", &Geometry::queues, nullptr, ranges::queues},
    {"ring", &Geometry::ring_lines, nullptr, ranges::ring_lines, " lines, a power of two"},
    {"buffers", &Geometry::buffers, nullptr, ranges::buffers},
    {"buf", &Geometry::buf_bytes, nullptr, ranges::buf_bytes, " bytes, a multiple of 64"},
    {"queue_buffers", &Geometry::queue_buffers, nullptr, ranges::queue_buffers},
    {"inline", &Geometry::inline_max, nullptr, ranges::inline_max, " bytes"},
    {"max_message", &Geometry::max_message, nullptr, ranges::max_message, " bytes"},
    {"heartbeat_ms", nullptr, &Options::heartbeat_ms, {20, 60000}},
    {"lost_ms", nullptr, &Options::lost_ms, {30, 600000}},
    {"linger_ms", nullptr, &Options::linger_ms, {0, 600000}},
    {"nt", nullptr, &Options::nt, {0, facts::nt_count - 1}, "", true},
    {"dma_link",
     nullptr,
     &Options::dma_link,
     {0, facts::dma_function_count},
     " (DMA channels)",
     true},
    {"dma", nullptr, &Options::dma, {0, facts::dma_function_count}, " (DMA channels)"},
    {"dmadev", nullptr, &Options::dmadevs, {0, facts::dma_function_count}, " (DMA channels)"},
    {"recheck_us", nullptr, &Options::recheck_us, {50, 1000000}, " (microseconds)"},
    {"spin_us", nullptr, &Options::spin_us, {0, 1000000}, " (microseconds)"},
    {"intr", nullptr, &Options::interrupts, {0, 1}},
    {"service", nullptr, &Options::service, {0, 1}},
    {"msi", nullptr, &Options::msi, {0, 1}, "", true},
    {"cable_uid", nullptr, &Options::cable_uid, {0, UINT32_MAX - 1}, ", a user's number", true},
};

int on_number(const char *key, const char *value, void *arg)
{
    const Parse &parse = *static_cast<Parse *>(arg);
    for (const NumberKey &k : number_keys) {
        if (std::strcmp(k.key, key) != 0)
            continue;
        uint32_t *out = k.in_geometry != nullptr ? &(parse.options->geometry.*k.in_geometry)
                                                 : &(parse.options->*k.in_options);
        if (!to_number(value, k.range, out))
            return bad_value(parse, key, value, RangeText(k.range, k.more));
    }
    return 0;
}

int on_cable(const char *key, const char *value, void *arg)
{
    const Parse &parse = *static_cast<Parse *>(arg);
    const size_t size = sizeof(parse.options->cable);
    const size_t length = value == nullptr ? 0 : strnlen(value, size);
    if (length == 0 || length >= size)
        return bad_value(parse, key, value, "a socket path of 1 to 107 bytes, or mem:<name>");
    std::memcpy(parse.options->cable, value, length + 1);
    return 0;
}

int on_numa(const char *key, const char *value, void *arg)
{
    const Parse &parse = *static_cast<Parse *>(arg);
    uint32_t node = 0;
    if (!to_number(value, {0, RTE_MAX_NUMA_NODES - 1}, &node))
        return bad_value(parse, key, value, "a NUMA node");
    parse.options->node = static_cast<int>(node);
    return 0;
}

template <class E>
struct Word {
    const char *text;
    E value;
};

template <class E, size_t N>
int pick(const Parse &parse, const char *key, const char *value, const Word<E> (&words)[N],
         const char *expected, E *out)
{
    for (const Word<E> &word : words) {
        if (value != nullptr && std::strcmp(word.text, value) == 0) {
            *out = word.value;
            return 0;
        }
    }
    return bad_value(parse, key, value, expected);
}

int on_state(const char *key, const char *value, void *arg)
{
    static constexpr Word<TwinState> words[] = {
        {"keep", TwinState::keep}, {"reset", TwinState::reset}, {"random", TwinState::random}};
    constexpr char with_seed[] = "random:";
    constexpr size_t length = sizeof(with_seed) - 1;
    constexpr char expected[] = "keep, reset, random, random:<seed> (1 to 4294967295), or a file "
                                "whose name has a / and at most 255 characters";
    const Parse &parse = *static_cast<Parse *>(arg);
    if (value != nullptr && std::strchr(value, '/') != nullptr) {
        if (std::strlen(value) >= sizeof(parse.options->state_file))
            return bad_value(parse, key, value, expected);
        std::snprintf(parse.options->state_file, sizeof(parse.options->state_file), "%s", value);
        parse.options->state = TwinState::file;
        return 0;
    }
    if (value == nullptr || std::strncmp(value, with_seed, length) != 0)
        return pick(parse, key, value, words, expected, &parse.options->state);
    if (!to_number(value + length, {1, UINT32_MAX}, &parse.options->state_seed))
        return bad_value(parse, key, value, expected);
    parse.options->state = TwinState::random;
    return 0;
}

int on_topology(const char *key, const char *value, void *arg)
{
    static constexpr Word<hw::Topology> words[] = {{"auto", hw::Topology::automatic},
                                                   {"b2b", hw::Topology::back_to_back},
                                                   {"rp", hw::Topology::root_port}};
    const Parse &parse = *static_cast<Parse *>(arg);
    return pick(parse, key, value, words, "auto, b2b or rp", &parse.options->topology);
}

int on_side(const char *key, const char *value, void *arg)
{
    static constexpr Word<bool> words[] = {{"virtual", false}, {"link", true}};
    const Parse &parse = *static_cast<Parse *>(arg);
    return pick(parse, key, value, words, "virtual or link", &parse.options->link_side);
}

int on_cache_hint(const char *key, const char *value, void *arg)
{
    static constexpr Word<CacheHintChoice> words[] = {{"auto", CacheHintChoice::automatic},
                                                      {"none", CacheHintChoice::none},
                                                      {"clwb", CacheHintChoice::clwb},
                                                      {"clflushopt", CacheHintChoice::clflushopt},
                                                      {"cldemote", CacheHintChoice::cldemote}};
    const Parse &parse = *static_cast<Parse *>(arg);
    return pick(parse, key, value, words, "auto, none, clwb, clflushopt or cldemote",
                &parse.options->cache_hint);
}

int on_stores(const char *key, const char *value, void *arg)
{
    static constexpr Word<StoresChoice> words[] = {{"auto", StoresChoice::automatic},
                                                   {"plain", StoresChoice::plain},
                                                   {"non_temporal", StoresChoice::non_temporal}};
    const Parse &parse = *static_cast<Parse *>(arg);
    return pick(parse, key, value, words, "auto, plain or non_temporal", &parse.options->stores);
}

int on_memory(const char *key, const char *value, void *arg)
{
    static constexpr Word<MemoryPolicy> words[] = {{"auto", MemoryPolicy::automatic},
                                                   {"plain", MemoryPolicy::plain},
                                                   {"wc", MemoryPolicy::write_combining}};
    const Parse &parse = *static_cast<Parse *>(arg);
    return pick(parse, key, value, words, "auto, plain or wc", &parse.options->memory);
}

int on_copy(const char *key, const char *value, void *arg)
{
    static constexpr Word<CopyMode> words[] = {
        {"auto", CopyMode::automatic}, {"cpu", CopyMode::cpu}, {"dma", CopyMode::dma}};
    const Parse &parse = *static_cast<Parse *>(arg);
    return pick(parse, key, value, words, "auto, cpu or dma", &parse.options->copy.mode);
}

int on_dma_min(const char *key, const char *value, void *arg)
{
    const Parse &parse = *static_cast<Parse *>(arg);
    if (!to_number(value, ranges::max_message, &parse.options->copy.dma_min))
        return bad_value(parse, key, value, RangeText(ranges::max_message, " bytes"));
    return 0;
}

int on_copy_curve(const char *key, const char *value, void *arg)
{
    const Parse &parse = *static_cast<Parse *>(arg);
    const char *expected = read_curve(value, &parse.options->copy.curve);
    return expected != nullptr ? bad_value(parse, key, value, expected) : 0;
}

int on_peer_csr(const char *key, const char *value, void *arg)
{
    static constexpr Word<PeerCsr> words[] = {{"open", PeerCsr::open}, {"closed", PeerCsr::closed}};
    const Parse &parse = *static_cast<Parse *>(arg);
    return pick(parse, key, value, words, "open or closed", &parse.options->peer_csr);
}

int on_rx(const char *key, const char *value, void *arg)
{
    static constexpr Word<RxMode> words[] = {{"direct", RxMode::direct},
                                             {"stable", RxMode::stable}};
    const Parse &parse = *static_cast<Parse *>(arg);
    return pick(parse, key, value, words, "direct or stable", &parse.options->rx);
}

int on_alut(const char *key, const char *value, void *arg)
{
    static constexpr Word<uint32_t> words[] = {
        {"0", 0}, {"128", facts::alut_entries_two_nt}, {"256", facts::alut_entries_one_nt}};
    const Parse &parse = *static_cast<Parse *>(arg);
    return pick(parse, key, value, words, "0, 128 or 256 (entries)", &parse.options->alut);
}

int on_segment(const char *key, const char *value, void *arg)
{
    constexpr ntb::Range range{4, wire::block_bytes_max / 1024};
    const Parse &parse = *static_cast<Parse *>(arg);
    uint32_t *kib = &parse.options->window.segment_kib;
    if (!to_number(value, range, kib) || !std::has_single_bit(*kib))
        return bad_value(parse, key, value, RangeText(range, " KiB, a power of two"));
    return 0;
}

int on_split(const char *key, const char *value, void *arg)
{
    constexpr ntb::Range range{0, 7};
    const Parse &parse = *static_cast<Parse *>(arg);
    if (!to_number(value, range, &parse.options->window.split))
        return bad_value(parse, key, value, RangeText(range, ": BAR2 is used as 2^split windows"));
    return 0;
}

/// A devarg that is no plain number.
struct Handler {
    const char *key;
    arg_handler_t run;
    bool of_twin = false;
};

constexpr Handler handlers[] = {{"cable", on_cable, true},
                                {"state", on_state, true},
                                {"alut", on_alut, true},
                                {"side", on_side, true},
                                {"numa", on_numa},
                                {"topo", on_topology},
                                {"cache_hint", on_cache_hint},
                                {"stores", on_stores},
                                {"mem", on_memory},
                                {"copy", on_copy},
                                {"peer_csr", on_peer_csr},
                                {"segment", on_segment},
                                {"split", on_split},
                                {"dma_min", on_dma_min},
                                {"copy_curve", on_copy_curve},
                                {"rx", on_rx}};

/// The names of all devargs, as rte_kvargs_parse() takes them.
struct Keys {
    const char *names[std::size(handlers) + std::size(number_keys) + 1]; ///< NULL after the last
};

constexpr Keys keys_of(bool twin)
{
    Keys keys{};
    size_t count = 0;
    for (const Handler &h : handlers)
        if (twin || !h.of_twin)
            keys.names[count++] = h.key;
    for (const NumberKey &k : number_keys)
        if (twin || !k.of_twin)
            keys.names[count++] = k.key;
    return keys;
}

constexpr Keys all_keys = keys_of(true);
constexpr Keys pci_keys = keys_of(false);

/// Of two values, neither is known to be the one that was meant.
int check_once(const rte_kvargs &kvargs, const char *const *names, const char *device)
{
    for (; *names != nullptr; ++names) {
        const unsigned count = rte_kvargs_count(&kvargs, *names);
        if (count <= 1)
            continue;
        PLX_INIT_LOG(ERR, "%s: devarg %s is given %u times: expected once\n", device, *names,
                     count);
        return -EINVAL;
    }
    return 0;
}

int run_handlers(rte_kvargs *kvargs, Parse *parse)
{
    for (const Handler &h : handlers)
        if (rte_kvargs_process(kvargs, h.key, h.run, parse) != 0)
            return -EINVAL;
    for (const NumberKey &k : number_keys)
        if (rte_kvargs_process(kvargs, k.key, on_number, parse) != 0)
            return -EINVAL;
    return 0;
}

/// As many as stream fastest (doc/decisions/007-queue-speed.md), and at most half of the buffers:
/// the application holds the others.
constexpr uint32_t queue_buffers_default_max = 2044;

/// Computes the sizes that were not given.
void derive(Geometry *g, const Machine &machine)
{
    const Footprint chosen =
        choose_footprint(machine, std::max(g->queues, 1u), element_bytes(g->buf_bytes), g->buffers);
    if (g->ring_lines == 0) {
        g->ring_lines = chosen.ring_lines;
        g->ring_by = chosen.ring_by;
    }
    if (g->inline_max == 0) {
        g->inline_max = inline_default;
        g->inline_most = wire::inline_bytes_max;
    } else {
        g->inline_most = g->inline_max;
    }
    g->buffers = chosen.buffers;
    g->buffers_by = chosen.buffers_by;
    if (g->queue_buffers == 0 && g->queues != 0)
        g->queue_buffers = std::clamp(g->buffers / (2 * g->queues), wire::buffers_per_line,
                                      queue_buffers_default_max);
    g->queue_buffers = g->queue_buffers / wire::buffers_per_line * wire::buffers_per_line;
    // Room for a peer with as many receive buffers as this host, some in lines that are not full.
    g->buffer_ring_lines = std::clamp(std::bit_ceil(2 * g->queue_buffers / wire::buffers_per_line),
                                      32u, wire::buffer_ring_lines_max);
}

} // namespace

int parse_options(const char *device, const char *args, bool twin, Options *options)
{
    Options parsed = *options;
    Parse parse{device, &parsed};
    if (args != nullptr && args[0] != '\0') {
        const char *const *names = (twin ? all_keys : pci_keys).names;
        rte_kvargs *kvargs = rte_kvargs_parse(args, names);
        if (kvargs == nullptr) {
            PLX_INIT_LOG(ERR, "%s: unknown or malformed devarg in \"%s\": known are %s%s\n", device,
                         args, twin ? PLX_TWIN_PARAMS : "", PLX_COMMON_PARAMS);
            return -EINVAL;
        }
        int rc = check_once(*kvargs, names, device);
        if (rc == 0)
            rc = run_handlers(kvargs, &parse);
        rte_kvargs_free(kvargs);
        if (rc != 0)
            return rc;
    }
    if (twin && parsed.cable[0] == '\0') {
        PLX_INIT_LOG(ERR,
                     "%s: devarg cable is missing: expected cable=<socket path> or "
                     "cable=mem:<name>\n",
                     device);
        return -EINVAL;
    }
    if (parsed.lost_ms <= parsed.heartbeat_ms) {
        PLX_INIT_LOG(ERR, "%s: lost_ms=%u has to be more than heartbeat_ms=%u\n", device,
                     parsed.lost_ms, parsed.heartbeat_ms);
        return -EINVAL;
    }
    if (parsed.copy.mode == CopyMode::cpu && parsed.copy.dma_min != 0) {
        PLX_INIT_LOG(ERR, "%s: dma_min=%u has no meaning with copy=cpu\n", device,
                     parsed.copy.dma_min);
        return -EINVAL;
    }
    // Kept as given: derived sizes are computed again when queues or buffers are configured.
    Geometry whole = parsed.geometry;
    derive(&whole, {});
    const int rc = check_geometry(device, whole);
    if (rc == 0)
        *options = parsed;
    return rc;
}

int apply_config(const char *device, const Geometry &base, const rte_pmd_plx_ntb_config &given,
                 const Machine &machine, Geometry *out)
{
    constexpr size_t first_version =
        offsetof(rte_pmd_plx_ntb_config, inline_max) + sizeof(given.inline_max);
    rte_pmd_plx_ntb_config config;
    if (const int rc = ntb::read_sized(given, first_version, config); rc != 0) {
        PLX_INIT_LOG(ERR, "%s: configuration of size %zu: %s, this driver knows %zu bytes\n",
                     device, given.size, rc == -E2BIG ? "fields beyond are set" : "invalid",
                     sizeof(config));
        return rc;
    }
    Geometry g = base;
    const auto lay = [](uint32_t from, uint32_t *to) {
        if (from != 0)
            *to = from;
    };
    lay(config.queues, &g.queues);
    lay(config.ring_lines, &g.ring_lines);
    lay(config.buffers, &g.buffers);
    lay(config.buf_bytes, &g.buf_bytes);
    lay(config.queue_buffers, &g.queue_buffers);
    lay(config.inline_max, &g.inline_max);
    lay(config.max_message, &g.max_message);
    lay(config.workers, &g.workers);
    derive(&g, machine);
    const int rc = check_geometry(device, g);
    if (rc == 0)
        *out = g;
    return rc;
}

int check_geometry(const char *device, const Geometry &g)
{
    for (const NumberKey &k : number_keys) {
        if (k.in_geometry == nullptr ||
            (k.in_geometry == &Geometry::max_message && g.max_message == 0))
            continue;
        const uint32_t value = g.*k.in_geometry;
        if (!k.range.has(value)) {
            PLX_INIT_LOG(ERR, "%s: %s=%u: expected %s\n", device, k.key, value,
                         static_cast<const char *>(RangeText(k.range, k.more)));
            return -EINVAL;
        }
    }
    if (!std::has_single_bit(g.ring_lines)) {
        PLX_INIT_LOG(ERR, "%s: ring=%u: expected a power of two\n", device, g.ring_lines);
        return -EINVAL;
    }
    if (g.buf_bytes % wire::line_bytes != 0) {
        PLX_INIT_LOG(ERR, "%s: buf=%u: expected a multiple of 64\n", device, g.buf_bytes);
        return -EINVAL;
    }
    if (g.workers > g.queues) {
        PLX_INIT_LOG(ERR, "%s: workers=%u: expected at most the %u queue pairs\n", device,
                     g.workers, g.queues);
        return -EINVAL;
    }
    if (uint64_t{g.queue_buffers} * g.queues > g.buffers) {
        PLX_INIT_LOG(ERR, "%s: buffers=%u is too small: %u queue pairs keep %u available each\n",
                     device, g.buffers, g.queues, g.queue_buffers);
        return -EINVAL;
    }
    if (g.max_message > uint64_t{wire::guaranteed_buffers(g.queue_buffers)} * g.buf_bytes) {
        PLX_INIT_LOG(ERR,
                     "%s: max_message=%u: %u buffers of %u bytes, which queue_buffers=%u always "
                     "leave, cannot hold it\n",
                     device, g.max_message, wire::guaranteed_buffers(g.queue_buffers), g.buf_bytes,
                     g.queue_buffers);
        return -EINVAL;
    }
    if (plan_block(g).block_bytes > wire::block_bytes_max) {
        PLX_INIT_LOG(ERR, "%s: %u buffers of %u bytes do not fit a block of 1 GiB\n", device,
                     g.buffers, g.buf_bytes);
        return -EINVAL;
    }
    return 0;
}

uint32_t element_bytes(uint32_t buf_bytes)
{
    return buf_bytes + RTE_PKTMBUF_HEADROOM;
}

BlockPlan plan_block(const Geometry &g)
{
    const size_t begin = wire::queue_area_end(g.queues, g.ring_lines, g.buffer_ring_lines);
    const uint32_t element = element_bytes(g.buf_bytes);
    static_assert(RTE_PKTMBUF_HEADROOM % wire::line_bytes == 0,
                  "receive buffers begin on a line after the headroom");
    const uint64_t end = begin + uint64_t{element} * g.buffers;
    return {.buf_begin = static_cast<uint32_t>(begin / wire::line_bytes),
            .buf_end = static_cast<uint32_t>(end / wire::line_bytes),
            .element_bytes = element,
            .block_bytes = std::max(std::bit_ceil(end), wire::block_bytes_min)};
}

} // namespace plx::pmd
