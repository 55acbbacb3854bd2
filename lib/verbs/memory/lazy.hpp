// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_MEMORY_LAZY_HPP
#define NTB_VERBS_MEMORY_LAZY_HPP

#include <cstddef>
#include <type_traits>
#include <utility>

#include <sys/mman.h>

namespace ntb::verbs
{

/// An array of zeroes whose pages cost nothing until they are written to.
template <typename T>
class Lazy
{
    static_assert(std::is_trivially_copyable_v<T>);

public:
    Lazy() = default;
    ~Lazy()
    {
        if (data_)
            munmap(data_, n_ * sizeof(T));
    }
    Lazy(const Lazy &) = delete;
    Lazy &operator=(const Lazy &) = delete;

    /// Once. @retval false no memory
    bool create(std::size_t n)
    {
        void *data = mmap(nullptr, n * sizeof(T), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (data == MAP_FAILED)
            return false;
        data_ = static_cast<T *>(data);
        n_ = n;
        return true;
    }
    void swap(Lazy &other)
    {
        std::swap(data_, other.data_);
        std::swap(n_, other.n_);
    }
    T &operator[](std::size_t i) { return data_[i]; }
    const T &operator[](std::size_t i) const { return data_[i]; }
    T *data() { return data_; }
    const T *data() const { return data_; }

private:
    T *data_ = nullptr;
    std::size_t n_ = 0;
};

} // namespace ntb::verbs

#endif
