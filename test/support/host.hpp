// SPDX-License-Identifier: BSD-3-Clause
// A host as a test sees it: in this process, or in a process of its own that can be killed or
// stopped. Every wait is bounded; what an answer does not bring in time is -ETIMEDOUT.
#ifndef TEST_SUPPORT_HOST_HPP
#define TEST_SUPPORT_HOST_HPP

#include "local_device.hpp"
#include "pages.hpp"

#include <functional>
#include <initializer_list>
#include <string>
#include <thread>

#include <sys/types.h>

namespace test
{

/// What a host is set up with.
struct HostSetup {
    std::string devargs; ///< beside the cable
    rte_pmd_plx_ntb_config config = {};
    uint32_t pool_mbufs = 0; ///< 0: the device's own pools
};

class Host
{
public:
    virtual ~Host() = default;

    /// A command that is carried out while the test goes on; end() waits for its answer.
    virtual void begin(const Command &command) = 0;
    virtual Answer end() = 0;
    Answer ask(const Command &command)
    {
        begin(command);
        return end();
    }
    Answer ask(Op op, uint64_t value = 0, const std::string &text = "");
    Answer ask(Op op, uint64_t value, uint64_t extra);
    /// Stores into the peer's window until @p seen: a mapping may follow late.
    bool store_until(uint64_t offset, uint64_t word, const std::function<bool()> &seen);

    /// Where the host's chip stands, as devargs that go with every attach.
    void place(const std::string &devargs) { place_ = devargs; }
    int64_t attach(const std::string &cable, const std::string &devargs);
    int64_t configure(const rte_pmd_plx_ntb_config &config);
    /// Attached, configured, set up and started. @return the first error
    int64_t bring_up(const std::string &cable, const HostSetup &setup);
    /// Configured again, set up and started, while it is attached and stopped.
    int64_t restart(const HostSetup &setup);
    void stop() { ask(Op::stop); }
    int64_t inject(rte_pmd_plx_ntb_fault fault, uint32_t argument)
    {
        return ask(Op::inject, uint64_t{fault} << 32 | argument).rc;
    }
    std::string events() { return ask(Op::observe).events; }
    rte_pmd_plx_ntb_link link() { return ask(Op::observe).link; }
    uint64_t xstat(const std::string &name) { return ask(Op::xstat, 0, name).value; }
    uint64_t outstanding() { return ask(Op::outstanding).value; }

    /// @return whether event @p letter was reported at least @p times since attach
    bool await_event(char letter, unsigned times = 1);
    bool await_state(rte_pmd_plx_ntb_state state);
    bool await_why(const std::string &why);
    bool await_xstat(const std::string &name, uint64_t at_least);

private:
    std::string place_;
};

class LocalHost final : public Host
{
public:
    ~LocalHost() override;
    void begin(const Command &command) override;
    Answer end() override;
    LocalDevice &local_device() { return local_device_; }

private:
    LocalDevice local_device_;
    std::thread thread_;
    Answer answer_;
};

class RemoteHost final : public Host
{
public:
    explicit RemoteHost(bool huge = huge_pages_granted());
    ~RemoteHost() override;
    void begin(const Command &command) override;
    Answer end() override;

    /// Of its two devices, the one that later commands are for.
    RemoteHost &device(uint32_t number)
    {
        device_ = number;
        return *this;
    }

    /// SIGKILL, and the process is known to be gone. A command that was under way has no answer.
    void kill_now();
    /// SIGSTOP, and the process is known to stand still.
    void freeze();
    void thaw();
    bool alive();

private:
    bool gone_within(int ms);

    pid_t pid_ = -1;
    int socket_ = -1;
    bool frozen_ = false;
    uint32_t device_ = 0;
    uint32_t limit_ms_ = 0;
};

/// A stream with these lengths.
Stream stream(uint32_t queue, uint32_t seed, uint32_t count,
              std::initializer_list<uint32_t> lengths);
Command traffic(std::initializer_list<Stream> out, std::initializer_list<Stream> in);

/// A folder of its own for cables; removed with all that is in it.
class Folder
{
public:
    Folder();
    ~Folder();
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;
    std::string file(const std::string &name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

} // namespace test

#endif
