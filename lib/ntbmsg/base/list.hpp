// SPDX-License-Identifier: BSD-3-Clause
// Intrusive lists: nothing is allocated, and an element can be removed from anywhere.
#ifndef NTBMSG_BASE_LIST_HPP
#define NTBMSG_BASE_LIST_HPP

namespace ntbmsg
{

template <class T>
struct ListNode {
    T *previous; ///< NULL: in no list; the first element's is itself
    T *next;
};

/// A queue of T through its member @p Node. All zeros is an empty one. One thread.
template <class T, ListNode<T> T::*Node>
class List
{
public:
    bool empty() const { return first_ == nullptr; }
    T *first() const { return first_; }
    T *last() const { return last_; }
    static T *after(const T &t) { return (t.*Node).next; }
    static bool has(const T &t) { return (t.*Node).previous != nullptr; }

    /// No effect if the element is in a list already.
    void push(T &t)
    {
        ListNode<T> &node = t.*Node;
        if (node.previous != nullptr)
            return;
        node = {last_ != nullptr ? last_ : &t, nullptr};
        if (last_ != nullptr)
            (last_->*Node).next = &t;
        else
            first_ = &t;
        last_ = &t;
    }
    void remove(T &t)
    {
        ListNode<T> &node = t.*Node;
        if (node.previous == nullptr)
            return;
        if (first_ == &t)
            first_ = node.next;
        else
            (node.previous->*Node).next = node.next;
        if (last_ == &t)
            last_ = first_ != nullptr ? node.previous : nullptr;
        else
            (node.next->*Node).previous = first_ == node.next ? node.next : node.previous;
        node = {};
    }
    T *pop()
    {
        T *t = first_;
        if (t != nullptr)
            remove(*t);
        return t;
    }

private:
    T *first_;
    T *last_;
};

} // namespace ntbmsg

#endif
