// SPDX-License-Identifier: BSD-3-Clause
// What EAL and the driver log, as text.
#ifndef TEST_SUPPORT_LOG_CAPTURE_HPP
#define TEST_SUPPORT_LOG_CAPTURE_HPP

#include <string>

namespace test
{

/// What was logged since this was made. The first one takes the log for the rest of the process.
class LogCapture
{
public:
    LogCapture();
    std::string text() const;
    /// The driver's lines alone.
    std::string driver() const;
    /// Everything since the first.
    static std::string whole();

private:
    size_t begin_;
};

} // namespace test

#endif
