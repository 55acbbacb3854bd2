// SPDX-License-Identifier: BSD-3-Clause
// Channels, ids, events, and the commands that are about them alone.
#include "cm/manager.hpp"

#include <utility>

namespace ntb::verbs::cm
{
namespace
{

std::uint8_t type_of(std::uint16_t space, std::uint8_t wanted)
{
    switch (space) {
    case RDMA_PS_TCP:
        return type_rc;
    case RDMA_PS_UDP:
    case RDMA_PS_IPOIB:
        return type_ud;
    case RDMA_PS_IB:
        return wanted >= type_rc && wanted <= type_ud ? wanted : 0;
    default:
        return 0;
    }
}

// Private data as the event has it: all that the message has room for.
std::uint8_t fill_private(const Message &message, std::uint8_t type, std::uint8_t (&to)[256])
{
    const std::uint32_t room = private_room(message.kind, type);
    std::memcpy(to, message.private_data, std::min<std::uint32_t>(message.private_bytes, room));
    return static_cast<std::uint8_t>(room);
}

} // namespace

Manager::~Manager()
{
    while (!channels_.empty())
        close(channels_.back()->descriptor);
}

void Manager::open(int channel)
{
    channels_.push_back(std::make_unique<Channel>());
    channels_.back()->descriptor = channel;
}

void Manager::close(int channel)
{
    for (const auto &id : ids_)
        if (id && id->channel == channel)
            end(*id);
    std::erase_if(channels_, [=](const auto &one) { return one->descriptor == channel; });
}

ssize_t Manager::write(int channel, const void *bytes, std::size_t size)
{
    Channel *const open = find_channel(channel);
    if (!open)
        return -EBADF;
    Command command;
    int error = command.read(bytes, size);
    if (error == 0)
        error = carry_out(*open, command);
    return error != 0 ? error : static_cast<ssize_t>(size);
}

std::size_t Manager::waiting(int channel) const
{
    const Channel *const open = find_channel(channel);
    return open ? open->events.size() : 0;
}

std::vector<int> Manager::take_changed()
{
    std::vector<int> changed;
    for (const auto &channel : channels_)
        if (std::exchange(channel->has_changed, false))
            changed.push_back(channel->descriptor);
    return changed;
}

int Manager::carry_out(Channel &channel, const Command &command)
{
    switch (command.number()) {
    case RDMA_USER_CM_CMD_CREATE_ID:
        return create_id(channel, command);
    case RDMA_USER_CM_CMD_DESTROY_ID:
        return destroy_id(channel, command);
    case RDMA_USER_CM_CMD_BIND_IP:
        return bind_ip(channel, command);
    case RDMA_USER_CM_CMD_RESOLVE_IP:
        return resolve_ip(channel, command);
    case RDMA_USER_CM_CMD_RESOLVE_ROUTE:
        return resolve_route(channel, command);
    case RDMA_USER_CM_CMD_QUERY_ROUTE:
        return query_route(channel, command);
    case RDMA_USER_CM_CMD_CONNECT:
        return connect(channel, command);
    case RDMA_USER_CM_CMD_LISTEN:
        return listen(channel, command);
    case RDMA_USER_CM_CMD_ACCEPT:
        return accept(channel, command);
    case RDMA_USER_CM_CMD_REJECT:
        return reject(channel, command);
    case RDMA_USER_CM_CMD_DISCONNECT:
        return disconnect(channel, command);
    case RDMA_USER_CM_CMD_INIT_QP_ATTR:
        return init_qp_attr(channel, command);
    case RDMA_USER_CM_CMD_GET_EVENT:
        return get_event(channel, command);
    case RDMA_USER_CM_CMD_SET_OPTION:
        return set_option(channel, command);
    case RDMA_USER_CM_CMD_NOTIFY:
        return notify(channel, command);
    case RDMA_USER_CM_CMD_MIGRATE_ID:
        return migrate_id(channel, command);
    case RDMA_USER_CM_CMD_BIND:
        // librdmacm tries an AF_IB address with it, and keeps to the commands above where it fails.
        return -EINVAL;
    default:
        return -ENOSYS;
    }
}

Manager::Channel *Manager::find_channel(int descriptor) const
{
    for (const auto &channel : channels_)
        if (channel->descriptor == descriptor)
            return channel.get();
    return nullptr;
}

Id *Manager::find(Channel &channel, std::uint32_t handle, int &error)
{
    Id *const id = handle != 0 && handle <= ids_.size() ? ids_[handle - 1].get() : nullptr;
    error = !id ? -ENOENT : id->channel != channel.descriptor ? -EINVAL : 0;
    return error == 0 ? id : nullptr;
}

Id *Manager::by_link(Link link)
{
    for (const auto &id : ids_)
        if (id && link != 0 && id->link == link)
            return id.get();
    return nullptr;
}

Id *Manager::by_port(Port port)
{
    for (const auto &id : ids_)
        if (id && id->is_claimed && Port{id->space, id->source.port} == port)
            return id.get();
    return nullptr;
}

// The lowest number that is free, since librdmacm has a table by it.
Id *Manager::make_id(int channel, std::uint16_t space, std::uint8_t type)
{
    auto place = std::find(ids_.begin(), ids_.end(), nullptr);
    if (place == ids_.end()) {
        if (ids_.size() == max_ids - 1)
            return nullptr;
        place = ids_.insert(place, nullptr);
    }
    *place = std::make_unique<Id>();
    Id &id = **place;
    id.handle = static_cast<std::uint32_t>(place - ids_.begin()) + 1;
    id.channel = channel;
    id.space = space;
    id.type = type;
    return &id;
}

void Manager::end(Id &id)
{
    if (id.state == State::Requested) {
        Message message = message_of(Kind::Rej);
        message.type = id.type;
        message.reason = reason::consumer_defined;
        send(id, message);
    } else if (id.state == State::Connected) {
        Message message = message_of(Kind::Dreq);
        message.type = id.type;
        send(id, message);
    }
    close_link(id);
    if (id.is_claimed)
        carrier_.release({id.space, id.source.port});
    if (Channel *const channel = find_channel(id.channel))
        drop_events(*channel, id.handle);
    ids_[id.handle - 1].reset();
}

// Those of an id that goes, and with them the ids that no program will learn of.
std::uint32_t Manager::drop_events(Channel &channel, std::uint32_t handle)
{
    std::uint32_t dropped = 0;
    std::vector<std::uint32_t> orphans;
    std::erase_if(channel.events, [&](const Waiting &event) {
        if (event.id != handle)
            return false;
        ++dropped;
        if (event.fresh != 0)
            orphans.push_back(event.fresh);
        return true;
    });
    channel.has_changed = channel.has_changed || dropped != 0;
    for (const std::uint32_t orphan : orphans)
        if (ids_[orphan - 1])
            end(*ids_[orphan - 1]);
    return dropped;
}

void Manager::post(Id &id, Event event, std::int32_t status, const Message *message, Id *fresh)
{
    Channel *const channel = find_channel(id.channel);
    // A new connection has no one to report to before it is accepted: accepting it then fails.
    if (!channel || (id.uid == 0 && id.is_passive))
        return;
    const Id &reported = fresh ? *fresh : id;
    Waiting waiting = {.id = id.handle, .fresh = fresh ? fresh->handle : 0, .answer = {}};
    rdma_ucm_event_resp &answer = waiting.answer;
    answer.uid = id.uid;
    answer.id = reported.handle;
    answer.event = static_cast<std::uint32_t>(event);
    answer.status = static_cast<std::uint32_t>(status);
    if (message && id.type == type_ud) {
        rdma_ucm_ud_param &param = answer.param.ud;
        param.private_data_len = fill_private(*message, id.type, param.private_data);
        if (message->kind == Kind::Rep) {
            param.qp_num = message->qpn;
            param.qkey = message->qkey;
            param.ah_attr.dlid = message->lid;
            param.ah_attr.port_num = 1;
        }
    } else if (message) {
        rdma_ucm_conn_param &param = answer.param.conn;
        param.private_data_len = fill_private(*message, id.type, param.private_data);
        if (message->kind != Kind::Rej) {
            param.qp_num = message->qpn;
            param.srq = message->srq;
            param.responder_resources = reported.responder_resources;
            param.initiator_depth = reported.initiator_depth;
            param.flow_control = message->flow_control;
            param.retry_count = message->retry_count;
            param.rnr_retry_count = message->rnr_retry_count;
        }
    }
    channel->events.push_back(waiting);
    channel->has_changed = true;
}

bool Manager::send(Id &id, const Message &message)
{
    if (id.link != 0 && !carrier_.send(id.link, message))
        id.link = 0;
    return id.link != 0;
}

void Manager::close_link(Id &id)
{
    if (id.link != 0)
        carrier_.close(id.link);
    id.link = 0;
}

// ---- commands

int Manager::create_id(Channel &channel, const Command &command)
{
    rdma_ucm_create_id wanted;
    if (const int error = command.get(wanted))
        return error;
    const std::uint8_t type = type_of(wanted.ps, wanted.qp_type);
    if (type == 0)
        return -EINVAL;
    Id *const id = make_id(channel.descriptor, wanted.ps, type);
    if (!id)
        return -ENOMEM;
    id->uid = wanted.uid;
    const rdma_ucm_create_id_resp made = {id->handle};
    const int error = command.answer(wanted.response, made);
    if (error != 0)
        end(*id);
    return error;
}

int Manager::destroy_id(Channel &channel, const Command &command)
{
    rdma_ucm_destroy_id wanted;
    int error = command.get(wanted);
    Id *const id = error == 0 ? find(channel, wanted.id, error) : nullptr;
    if (!id)
        return error;
    const rdma_ucm_destroy_id_resp reported = {id->reported};
    error = command.answer(wanted.response, reported);
    if (error == 0)
        end(*id);
    return error;
}

int Manager::get_event(Channel &channel, const Command &command)
{
    rdma_ucm_get_event wanted;
    if (const int error = command.get(wanted))
        return error;
    if (channel.events.empty())
        return -EAGAIN;
    const Waiting &first = channel.events.front();
    if (const int error =
            command.answer(wanted.response, first.answer, offsetof(rdma_ucm_event_resp, reserved)))
        return error;
    Id &id = *ids_[first.id - 1];
    ++id.reported;
    if (first.fresh != 0)
        ++id.backlog;
    channel.events.pop_front();
    channel.has_changed = true;
    return 0;
}

// What changes nothing here is accepted, if it is an option at all.
int Manager::set_option(Channel &channel, const Command &command)
{
    rdma_ucm_set_option wanted;
    int error = command.get(wanted);
    Id *const id = error == 0 ? find(channel, wanted.id, error) : nullptr;
    if (!id)
        return error;
    if (wanted.level != RDMA_OPTION_ID || wanted.optname > RDMA_OPTION_ID_ACK_TIMEOUT)
        return -ENOSYS;
    const bool is_byte =
        wanted.optname == RDMA_OPTION_ID_TOS || wanted.optname == RDMA_OPTION_ID_ACK_TIMEOUT;
    if (wanted.optlen != (is_byte ? 1 : sizeof(int)))
        return -EINVAL;
    if (wanted.optval == 0)
        return -EFAULT;
    if (wanted.optname == RDMA_OPTION_ID_AFONLY) {
        int value;
        std::memcpy(&value, reinterpret_cast<const void *>(wanted.optval), sizeof(value));
        id->is_v6_only = value != 0;
    }
    return 0;
}

int Manager::migrate_id(Channel &channel, const Command &command)
{
    rdma_ucm_migrate_id wanted;
    if (const int error = command.get(wanted))
        return error;
    Channel *const from = find_channel(static_cast<int>(wanted.fd));
    if (!from)
        return -EINVAL;
    int error = 0;
    Id *const id = find(*from, wanted.id, error);
    if (!id)
        return error;
    const rdma_ucm_migrate_resp reported = {id->reported};
    error = command.answer(wanted.response, reported);
    if (error != 0 || from == &channel)
        return error;
    std::erase_if(from->events, [&](const Waiting &event) {
        const bool goes = event.id == id->handle;
        if (goes)
            channel.events.push_back(event);
        if (goes && event.fresh != 0)
            ids_[event.fresh - 1]->channel = channel.descriptor;
        return goes;
    });
    id->channel = channel.descriptor;
    from->has_changed = channel.has_changed = true;
    return 0;
}

int Manager::init_qp_attr(Channel &channel, const Command &command)
{
    rdma_ucm_init_qp_attr wanted;
    int error = command.get(wanted);
    Id *const id = error == 0 ? find(channel, wanted.id, error) : nullptr;
    if (!id)
        return error;
    ib_uverbs_qp_attr attr;
    error = queue_pair_attributes(*id, wanted.qp_state, attr);
    return error != 0 ? error : command.answer(wanted.response, attr);
}

} // namespace ntb::verbs::cm
