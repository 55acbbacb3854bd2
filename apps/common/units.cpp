// SPDX-License-Identifier: BSD-3-Clause
#include "units.hpp"

#include <cstdio>
#include <cstring>

namespace app
{

std::string with_unit(double value, const char *unit)
{
    static constexpr const char *steps[] = {"n", "u", "m", "", "k", "M", "G", "T"};
    unsigned step = 3;
    while (value >= 999.5 && step + 1 < sizeof(steps) / sizeof(steps[0])) {
        value /= 1000;
        ++step;
    }
    // There is no part of a message.
    const bool divisible = std::strcmp(unit, "s") == 0;
    while (divisible && value > 0 && value < 0.9995 && step > 0) {
        value *= 1000;
        --step;
    }
    char text[48];
    const int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    std::snprintf(text, sizeof(text), "%.*f %s%s", digits, value, steps[step], unit);
    return text;
}

} // namespace app
