// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_QUEUE_HOOK_HPP
#define NTB_VERBS_QUEUE_HOOK_HPP

namespace ntb::verbs
{

/// A place in a list of owners, which allocates nothing. The list itself is a hook without owner.
template <typename Owner>
class Hook
{
public:
    explicit Hook(Owner *owner = nullptr) : owner_(owner) {}
    ~Hook() { unlink(); }
    Hook(const Hook &) = delete;
    Hook &operator=(const Hook &) = delete;

    bool linked() const { return next_ != this; }
    void unlink()
    {
        previous_->next_ = next_;
        next_->previous_ = previous_;
        previous_ = next_ = this;
    }
    /// Of a list: takes the hook in as its last, unless it is in one already.
    void append(Hook &hook) { hook.insert(*previous_, *this); }
    /// Of a list: as its first.
    void prepend(Hook &hook) { hook.insert(*this, *next_); }
    bool empty() const { return !linked(); }
    Owner *first() const { return next_->owner_; }
    /// The owner behind this hook; NULL: it is the last one.
    Owner *next() const { return next_->owner_; }

private:
    void insert(Hook &before, Hook &behind)
    {
        if (linked())
            return;
        previous_ = &before;
        next_ = &behind;
        before.next_ = this;
        behind.previous_ = this;
    }

    Hook *previous_ = this, *next_ = this;
    Owner *owner_;
};

} // namespace ntb::verbs

#endif
