// SPDX-License-Identifier: BSD-3-Clause
#include "units.hpp"

#include <cstdio>
#include <cstring>
#include <utility>

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

std::string quantiles_text(const Histogram &times, double ticks_per_second)
{
    const auto text = [&](uint64_t ticks) {
        return with_unit(static_cast<double>(ticks) / ticks_per_second, "s");
    };
    std::string line;
    for (const auto &[name, part] :
         {std::pair{"p50 ", 0.5}, {"p90 ", 0.9}, {"p99 ", 0.99}, {"p99.9 ", 0.999}})
        line += name + text(times.quantile(part)) + "  ";
    return line + "max " + text(times.max());
}

} // namespace app
