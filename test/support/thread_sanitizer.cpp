// SPDX-License-Identifier: BSD-3-Clause
// What ThreadSanitizer has to know about a DPDK that is not instrumented. Part of its builds
// only, in programs with eal_main.cpp.
#include <cerrno>
#include <cstdio>
#include <deque>
#include <mutex>
#include <new>

#include <gtest/gtest.h>

#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

// How EAL's alarm list hands memory to the interrupt thread is not seen.
extern "C" const char *__tsan_default_suppressions()
{
    return "called_from_lib:librte_eal.so\n";
}

namespace
{

// DPDK's own pools hand mbufs from one thread to another through a ring in a library, which is not
// seen either: each mbuf would look like a race. So pools stand on a queue under a lock.
struct Shelf {
    std::mutex lock;
    std::deque<void *> objects;
};

Shelf &shelf_of(const rte_mempool *pool)
{
    return *static_cast<Shelf *>(pool->pool_data);
}

int alloc(rte_mempool *pool)
{
    pool->pool_data = new (std::nothrow) Shelf;
    return pool->pool_data != nullptr ? 0 : -ENOMEM;
}

void release(rte_mempool *pool)
{
    delete &shelf_of(pool);
}

int enqueue(rte_mempool *pool, void *const *objects, unsigned n)
{
    Shelf &shelf = shelf_of(pool);
    const std::lock_guard held(shelf.lock);
    shelf.objects.insert(shelf.objects.end(), objects, objects + n);
    return 0;
}

int dequeue(rte_mempool *pool, void **objects, unsigned n)
{
    Shelf &shelf = shelf_of(pool);
    const std::lock_guard held(shelf.lock);
    if (shelf.objects.size() < n)
        return -ENOBUFS;
    for (unsigned i = 0; i < n; ++i) {
        objects[i] = shelf.objects.front();
        shelf.objects.pop_front();
    }
    return 0;
}

unsigned get_count(const rte_mempool *pool)
{
    Shelf &shelf = shelf_of(pool);
    const std::lock_guard held(shelf.lock);
    return static_cast<unsigned>(shelf.objects.size());
}

rte_mempool_ops shelf_ops()
{
    rte_mempool_ops ops{};
    std::snprintf(ops.name, sizeof(ops.name), "shelf");
    ops.alloc = alloc;
    ops.free = release;
    ops.enqueue = enqueue;
    ops.dequeue = dequeue;
    ops.get_count = get_count;
    return ops;
}

/// Set up after EAL, before the first test.
class Shelves : public testing::Environment
{
public:
    void SetUp() override
    {
        const rte_mempool_ops ops = shelf_ops();
        ASSERT_GE(rte_mempool_register_ops(&ops), 0);
        ASSERT_EQ(rte_mbuf_set_platform_mempool_ops(ops.name), 0);
    }
};

[[maybe_unused]] const auto *const shelves = testing::AddGlobalTestEnvironment(new Shelves);

} // namespace
