// SPDX-License-Identifier: BSD-3-Clause
#include "counted_engine.hpp"

#include <cerrno>
#include <string>

#include <rte_dmadev.h>

#include "counted_pair.hpp"
#include "host/dma_channel.hpp"

namespace gate
{

Engine::Engine()
{
    const std::string name = std::string(engine_device) + "_dma0";
    m_dev = static_cast<int16_t>(rte_dma_get_dev_id_by_name(name.c_str()));
    if (m_dev < 0)
        fail("no dmadev", m_dev);
    int rc = bench::start_dma_channel(m_dev, 256);
    if (rc == 0 && !m_memory.reserve(2 * bytes_max))
        rc = -ENOMEM;
    if (rc != 0)
        fail("the dmadev does not start", rc);
}

Engine::~Engine()
{
    rte_dma_stop(m_dev);
}

int Engine::copy(uint16_t n, uint32_t bytes) const
{
    int rc = 0;
    for (uint16_t i = 0; i < n && rc >= 0; ++i)
        rc = rte_dma_copy(m_dev, 0, m_memory.iova(), m_memory.iova() + bytes_max, bytes, 0);
    return rc < 0 ? rc : n;
}

int Engine::submit() const
{
    return rte_dma_submit(m_dev, 0);
}

int Engine::completed(uint16_t n) const
{
    bool error = false;
    const uint16_t done = rte_dma_completed(m_dev, 0, n, nullptr, &error);
    return error ? -EIO : done;
}

} // namespace gate
