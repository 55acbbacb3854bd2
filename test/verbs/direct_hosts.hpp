// SPDX-License-Identifier: BSD-3-Clause
// Two joined hosts, both direct: a queue pair, memory of one, and whole pages of the other.
#ifndef NTB_TEST_VERBS_DIRECT_HOSTS_HPP
#define NTB_TEST_VERBS_DIRECT_HOSTS_HPP

#include <optional>
#include <vector>

#include <sys/mman.h>

#include "hosts.hpp"
#include "memory/exchange.hpp"
#include "memory/pages.hpp"
#include "memory_files.hpp"

namespace verbs_test
{

using ntb::verbs::be_direct;
using ntb::verbs::can_exchange;
using ntb::verbs::MemoryFiles;
using ntb::verbs::page;

/// Whole pages of their own, registered or not.
struct Pages {
    std::byte *const memory;
    const std::size_t bytes;
    ntbv_pd *pd = nullptr;
    std::uint32_t key = 0;

    explicit Pages(std::size_t n)
        : memory(static_cast<std::byte *>(
              mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
          bytes(n)
    {
    }
    Pages(ntbv_pd *domain, std::size_t n, unsigned rights = all_rights) : Pages(n)
    {
        enter(domain, rights);
    }
    ~Pages()
    {
        if (key != 0)
            leave();
        munmap(memory, bytes);
    }
    Pages(const Pages &) = delete;
    Pages &operator=(const Pages &) = delete;
    void enter(ntbv_pd *domain, unsigned rights = all_rights)
    {
        pd = domain;
        EXPECT_EQ(ntbv_mr_register(pd, memory, bytes, address(), rights, &key), 0);
    }
    void leave()
    {
        EXPECT_EQ(ntbv_mr_deregister(pd, key), 0);
        key = 0;
    }
    std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(memory); }
    std::uint64_t word(std::size_t offset = 0) const
    {
        return __atomic_load_n(reinterpret_cast<std::uint64_t *>(memory + offset),
                               __ATOMIC_ACQUIRE);
    }
    void set_word(std::uint64_t value, std::size_t offset = 0)
    {
        __atomic_store_n(reinterpret_cast<std::uint64_t *>(memory + offset), value,
                         __ATOMIC_RELEASE);
    }
};

class DirectHosts : public Hosts
{
protected:
    void SetUp() override
    {
        if (!can_exchange())
            GTEST_SKIP() << "the kernel has no userfaultfd for this user";
        ASSERT_EQ(be_direct(*a.engine, files), 0);
        if (owner_is_direct) {
            ASSERT_EQ(be_direct(*b.engine, files), 0);
        }
        Hosts::SetUp();
        connect(NTBV_RC);
        mb.emplace(b.pd, 16 * page);
    }
    Work work(ntbv_opcode opcode, std::uint64_t id, std::size_t bytes, std::size_t offset = 0)
    {
        Work made(opcode, id, ma.piece(0, bytes));
        made.wr.remote_address = mb->address() + offset;
        made.wr.remote_key = mb->key;
        return made;
    }
    /// The queue pair knows the region.
    void get_to_know(ntbv_opcode opcode = NTBV_WRITE)
    {
        ASSERT_EQ(work(opcode, 1000, 8).post(qa), 0);
        ASSERT_EQ(one(a.cq).status, NTBV_SUCCESS);
    }
    std::uint64_t writes() { return ntbv_engine_count(a.engine, NTBV_COUNT_WRITES); }
    std::uint64_t reads() { return ntbv_engine_count(a.engine, NTBV_COUNT_READS); }
    std::uint64_t shared() { return ntbv_engine_count(b.engine, NTBV_COUNT_SHARED); }
    /// What is there without anything that either engine does.
    std::vector<ntbv_wc> there(ntbv_cq *cq)
    {
        std::vector<ntbv_wc> all(64);
        const int n = ntbv_cq_poll(cq, 64, all.data());
        all.resize(static_cast<std::size_t>(n < 0 ? 0 : n));
        return all;
    }

    bool owner_is_direct = true;
    MemoryFiles files;
    Memory ma{a.pd, 100000};
    std::optional<Pages> mb;
};

} // namespace verbs_test

#endif
