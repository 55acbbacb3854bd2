// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTBD_PRINTABLE_HPP
#define NTBD_PRINTABLE_HPP

#include <string>
#include <string_view>

namespace ntbd
{

/// A name may have any byte: what a terminal could take for a command is shown as '?'.
inline std::string printable(std::string_view name)
{
    std::string shown(name);
    for (char &c : shown)
        if (c < ' ' || c > '~')
            c = '?';
    return shown;
}

} // namespace ntbd

#endif
