// SPDX-License-Identifier: BSD-3-Clause
// Lists through their elements: nothing is allocated, and an element leaves from anywhere.
#ifndef NTBMSG_LIST_HPP
#define NTBMSG_LIST_HPP

namespace ntbmsg
{

template <class T>
struct ListNode {
    T *previous;
    T *next;
    bool listed;
};

/// A queue of T by its node @p Node. All zeros is an empty one. One thread.
template <class T, ListNode<T> T::*Node>
class List
{
public:
    bool empty() const { return first_ == nullptr; }
    T *first() const { return first_; }
    static T *after(const T &t) { return (t.*Node).next; }
    static bool has(const T &t) { return (t.*Node).listed; }

    /// Nothing happens to an element that is in it already.
    void push(T &t)
    {
        ListNode<T> &node = t.*Node;
        if (node.listed)
            return;
        node = {last_, nullptr, true};
        if (last_ != nullptr)
            (last_->*Node).next = &t;
        else
            first_ = &t;
        last_ = &t;
    }
    void remove(T &t)
    {
        ListNode<T> &node = t.*Node;
        if (!node.listed)
            return;
        if (node.previous != nullptr)
            (node.previous->*Node).next = node.next;
        else
            first_ = node.next;
        if (node.next != nullptr)
            (node.next->*Node).previous = node.previous;
        else
            last_ = node.previous;
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
