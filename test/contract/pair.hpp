// SPDX-License-Identifier: BSD-3-Clause
// Two hosts on one cable. The near one is in the test's process; the far one is there too, or in a
// process of its own: what is promised is the same.
#ifndef TEST_CONTRACT_PAIR_HPP
#define TEST_CONTRACT_PAIR_HPP

#include "host.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <poll.h>
#include <rte_mbuf.h>
#include <unistd.h>

namespace contract
{

using test::Answer;
using test::Command;
using test::HostSetup;
using test::Op;
using test::Stream;
using test::stream;
using test::traffic;

enum class BackEnd { threads, processes };

struct Setting {
    const char *name;
    BackEnd back_end;
    std::string near_place; ///< devargs
    std::string far_place;
};
inline const std::string on_virtual_side = "topo=rp";
inline const std::string on_link_side = "topo=rp,side=link";
/// Of the chip's four DMA channels two are the link side's: said at both ends.
inline const std::string two_each = ",dma_link=2";

inline void PrintTo(const Setting &setting, std::ostream *out)
{
    *out << setting.near_place << " / " << setting.far_place;
}

/// No heartbeat is missed by these, however busy the machine: the end of a connection is reported
/// by the cable and by hellos.
inline const std::string patient = "heartbeat_ms=30000,lost_ms=60000";

/// Waits for a fact, within a bound that nothing needs.
inline bool await(const std::function<bool()> &fact)
{
    for (int i = 0; i < 60'000 && !fact(); ++i)
        poll(nullptr, 0, 1);
    return fact();
}

class Pair : public testing::TestWithParam<Setting>
{
protected:
    Pair()
    {
        static unsigned cables = 0;
        if (GetParam().back_end == BackEnd::threads) {
            far_ = std::make_unique<test::LocalHost>();
            cable_ = "mem:" + std::to_string(getpid()) + "-" + std::to_string(cables++);
        } else {
            far_ = std::make_unique<test::RemoteHost>();
            cable_ = folder_.file("cable");
        }
        near_.place(GetParam().near_place);
        far_->place(GetParam().far_place);
    }

    test::Host &near() { return near_; }
    test::Host &far() { return *far_; }
    test::LocalDevice &local_device() { return near_.local_device(); }
    uint16_t id() { return near_.local_device().id(); }
    const std::string &cable() const { return cable_; }
    static bool one_chip() { return has(GetParam().near_place, on_virtual_side); }
    static bool near_beyond_link() { return has(GetParam().near_place, on_link_side); }
    /// Whether the chip has DMA channels for the far host.
    static bool far_has_engines()
    {
        const std::string &place = GetParam().far_place;
        return !has(place, on_link_side) || has(place, two_each);
    }
    /// Where the near device stands while its link is down. From beyond the link no register can be
    /// reached then: the peer's access cannot be taken away, and nothing is reused before it is.
    static rte_pmd_plx_ntb_state near_without_link()
    {
        return near_beyond_link() ? RTE_PMD_PLX_NTB_FENCING : RTE_PMD_PLX_NTB_WAITING;
    }

    static HostSetup usual() { return {.devargs = patient}; }
    void bring_up(const HostSetup &near_setup = usual(), const HostSetup &far_setup = usual())
    {
        ASSERT_EQ(near().bring_up(cable(), near_setup), 0);
        ASSERT_EQ(far().bring_up(cable(), far_setup), 0);
        await_connected(1);
    }
    /// Both have reported a connection for the @p times-th time.
    void await_connected(unsigned times)
    {
        const auto both = [&] {
            return std::string("near: ") + near().link().why + "; far: " + far().link().why;
        };
        ASSERT_TRUE(near().await_event('C', times)) << both();
        ASSERT_TRUE(far().await_event('C', times)) << both();
    }
    /// Both commands at the same time, both answered well.
    void exchange(const Command &near_command, const Command &far_command)
    {
        if (HasFatalFailure())
            return; // there are no two hosts that could
        far().begin(far_command);
        near().begin(near_command);
        const Answer here = near().end();
        const Answer there = far().end();
        ASSERT_EQ(here.rc, 0) << "near: " << here.text;
        ASSERT_EQ(there.rc, 0) << "far: " << there.text;
    }
    void one_way(const Stream &s) { exchange(traffic({s}, {}), traffic({}, {s})); }
    void both_ways(const Stream &s) { exchange(traffic({s}, {s}), traffic({s}, {s})); }

    /// The near host gets a stream, keeps its mbufs, and sends them back as they are.
    void send_on(const Stream &s)
    {
        Command keep = traffic({}, {s});
        keep.keep = true;
        exchange(keep, traffic({s}, {}));
        const std::vector<rte_mbuf *> &kept = local_device().kept();
        ASSERT_EQ(kept.size(), s.count);
        far().begin(traffic({}, {s}));
        for (uint32_t i = 0; i < s.count; ++i) {
            rte_mbuf *m = kept[i];
            rte_mbuf_refcnt_update(m, 1); // the device frees its own reference
            const rte_pmd_plx_ntb_meta meta = test::message_meta(s, i);
            int rc = 0;
            for (unsigned tries = 0; rc == 0 && tries < 10'000'000; ++tries)
                rc = rte_pmd_plx_ntb_tx_burst(id(), 0, &m, &meta, 1);
            ASSERT_EQ(rc, 1);
        }
        const Answer there = far().end();
        EXPECT_EQ(there.rc, 0) << there.text;
    }

    /// Whatever a test did: everything ends, and every mbuf is home.
    void TearDown() override
    {
        for (test::Host *host : {&near(), &far()}) {
            host->ask(Op::release);
            host->stop();
            EXPECT_EQ(host->outstanding(), 0u);
            EXPECT_EQ(host->ask(Op::detach).rc, 0);
        }
    }

private:
    static bool has(const std::string &place, const std::string &what)
    {
        return place.find(what) != std::string::npos;
    }

    test::Folder folder_;
    test::LocalHost near_;
    std::unique_ptr<test::Host> far_;
    std::string cable_;
};

inline std::string name_of(const testing::TestParamInfo<Setting> &info)
{
    return info.param.name;
}

#define CONTRACT_BACK_ENDS(suite)                                                                  \
    INSTANTIATE_TEST_SUITE_P(OneProcess, suite,                                                    \
                             testing::Values(Setting{"threads", BackEnd::threads, "", ""}),        \
                             name_of);                                                             \
    INSTANTIATE_TEST_SUITE_P(TwoProcesses, suite,                                                  \
                             testing::Values(Setting{"processes", BackEnd::processes, "", ""}),    \
                             name_of)

/// One chip between the hosts, the near one behind its link: what is promised goes for both.
#define CONTRACT_ROOT_PORT(suite)                                                                  \
    INSTANTIATE_TEST_SUITE_P(                                                                      \
        RootPort, suite,                                                                           \
        testing::Values(Setting{"threads", BackEnd::threads, on_link_side, on_virtual_side}),      \
        name_of)
/// So in two processes.
#define CONTRACT_ROOT_PORT_PROCESSES(suite)                                                        \
    INSTANTIATE_TEST_SUITE_P(                                                                      \
        TwoProcessesRootPort, suite,                                                               \
        testing::Values(Setting{"processes", BackEnd::processes, on_link_side, on_virtual_side}),  \
        name_of)
/// Chips back to back by their second NT ports.
#define CONTRACT_NT1(suite)                                                                        \
    INSTANTIATE_TEST_SUITE_P(                                                                      \
        Nt1, suite, testing::Values(Setting{"threads", BackEnd::threads, "nt=1", "nt=1"}),         \
        name_of)

/// Those of one process, for suites that drive both hosts from the test's thread.
#define CONTRACT_ONE_PROCESS(suite)                                                                \
    INSTANTIATE_TEST_SUITE_P(OneProcess, suite,                                                    \
                             testing::Values(Setting{"threads", BackEnd::threads, "", ""}),        \
                             name_of);                                                             \
    CONTRACT_ROOT_PORT(suite);                                                                     \
    CONTRACT_NT1(suite)

/// All of these.
#define CONTRACT_EVERYWHERE(suite)                                                                 \
    CONTRACT_BACK_ENDS(suite);                                                                     \
    CONTRACT_ROOT_PORT(suite);                                                                     \
    CONTRACT_ROOT_PORT_PROCESSES(suite);                                                           \
    CONTRACT_NT1(suite)

/// All of these for suites that want DMA engines, which a chip between the hosts has on the virtual
/// side, where the near host is then, or two on each side.
#define CONTRACT_EVERYWHERE_WITH_ENGINES(suite)                                                    \
    CONTRACT_BACK_ENDS(suite);                                                                     \
    CONTRACT_NT1(suite);                                                                           \
    INSTANTIATE_TEST_SUITE_P(                                                                      \
        TwoProcessesRootPort, suite,                                                               \
        testing::Values(Setting{"processes", BackEnd::processes, on_virtual_side + two_each,       \
                                on_link_side + two_each}),                                         \
        name_of);                                                                                  \
    INSTANTIATE_TEST_SUITE_P(                                                                      \
        RootPort, suite,                                                                           \
        testing::Values(Setting{"virtual", BackEnd::threads, on_virtual_side, on_link_side},       \
                        Setting{"link", BackEnd::threads, on_link_side + two_each,                 \
                                on_virtual_side + two_each}),                                      \
        name_of)

} // namespace contract

#endif
