// SPDX-License-Identifier: BSD-3-Clause
// The border in C: an engine with a network.
#include <cerrno>
#include <new>

#include "network/network.hpp"
#include "ntbv.h"

using ntb::verbs::lid_of;
using ntb::verbs::node_of;

struct ntbv_node {
    ntbv_engine *engine = nullptr;
    ntb::verbs::Network network;

    ntbv_node(ntbv_clock clock, void *context) : network(clock, context) {}
};

int ntbv_node_open(const char *socket, ntbv_clock clock, void *context, ntbv_node **node)
{
    auto *made = new (std::nothrow) ntbv_node(clock, context);
    if (!made)
        return -ENOMEM;
    int error = made->network.open(socket);
    if (error == 0) {
        const ntb::verbs::Address own = made->network.address();
        made->engine = ntbv_engine_create(lid_of(own), node_of(own), clock, context);
        error = made->engine ? made->network.start(*made->engine) : -errno;
    }
    if (error == 0) {
        *node = made;
        return 0;
    }
    made->network.stop();
    if (made->engine)
        ntbv_engine_destroy(made->engine);
    delete made;
    return error;
}

ntbv_engine *ntbv_node_engine(ntbv_node *node)
{
    return node->engine;
}

uint16_t ntbv_node_lid(const ntbv_node *node)
{
    return lid_of(node->network.address());
}

int ntbv_node_be_direct(ntbv_node *node, ntbv_direct how)
{
    return node->engine->be_direct(node->network.segments(), how == NTBV_DIRECT_SENDS);
}

int ntbv_node_close(ntbv_node *node)
{
    {
        const ntb::verbs::Visit visit(node->engine->lock());
        if (node->engine->users != 0)
            return -EBUSY;
    }
    node->network.stop();
    ntbv_engine_destroy(node->engine);
    delete node;
    return 0;
}
