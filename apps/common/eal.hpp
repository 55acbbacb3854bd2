// SPDX-License-Identifier: BSD-3-Clause
// The command line "app [EAL options] -- [own options]", and EAL's life.
#ifndef APP_EAL_HPP
#define APP_EAL_HPP

namespace app
{

/// The own part of a command line, with the program's name in front as getopt_long wants it.
struct OwnArguments {
    int argc;
    char **argv;
    bool given; ///< there was a "--"
};

/// Changes nothing: lets wrong options be reported before EAL starts, which takes a while and logs
/// much.
OwnArguments own_arguments(int argc, char **argv);

/// EAL from construction to the end of the scope.
class Eal
{
public:
    Eal(int argc, char **argv);
    ~Eal();
    Eal(const Eal &) = delete;
    Eal &operator=(const Eal &) = delete;

    bool running() const { return running_; } ///< false: EAL has said why

private:
    bool running_;
};

} // namespace app

#endif
