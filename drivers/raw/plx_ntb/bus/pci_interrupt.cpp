// SPDX-License-Identifier: BSD-3-Clause
#include "bus/pci_interrupt.hpp"

#include <cerrno>

#include <rte_interrupts.h>

namespace plx::pmd
{

namespace
{

void on_interrupt(void *arg)
{
    const auto *state = static_cast<const PciInterrupt *>(arg);
    state->fn(state->arg);
    // A level that is still asserted interrupts again.
    rte_intr_ack(state->handle);
}

} // namespace

int pci_interrupt_watch(rte_intr_handle *handle, PciInterrupt *state, void (*fn)(void *arg),
                        void *arg)
{
    if (fn == nullptr) {
        rte_intr_disable(handle);
        rte_intr_callback_unregister_sync(handle, on_interrupt, state);
        return 0;
    }
    if (handle == nullptr || rte_intr_fd_get(handle) < 0)
        return -ENOTSUP;
    *state = {handle, fn, arg};
    const int rc = rte_intr_callback_register(handle, on_interrupt, state);
    if (rc != 0)
        return rc;
    if (rte_intr_enable(handle) == 0)
        return 0;
    rte_intr_callback_unregister_sync(handle, on_interrupt, state);
    return -ENOTSUP;
}

} // namespace plx::pmd
