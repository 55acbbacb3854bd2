/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of an engine of verbs (lib/verbs/engine/lock.hpp): two threads that call, each of which may become the owner, and a
 * visitor. Spin looks at every order. No two may be inside at a time; nobody may wait for ever, which is an invalid end state.
 *
 * The stores of an owner wait in a buffer of its processor, in order, as long as can be; a thread that revokes drains them by
 * membarrier. So do a system call and the mutex, whose locked instructions the owner passes before it sleeps. The owner itself
 * is changed under the mutex alone, and that store is seen at once, as revoke() makes a barrier behind it.
 *
 * One step left out, each of which has to fail:
 *   -DNO_BARRIER  who revokes does not drain the buffers
 *   -DNO_AGAIN    an owner does not look a second time whether it still is
 *   -DNO_QUIET    who revokes does not wait until nobody is inside
 *   -DNO_WAKE     an owner that leaves does not wake who waits
 *   -DONE_SEAT    all owners have one word in common
 */
#define CALLS 3      /* of each thread that calls: one to become the owner, then as such */
#define VISITS 2
#define NOBODY 2

byte owner = NOBODY;
bool mutex;
#ifdef ONE_SEAT
#define SEAT(thread) 0
#else
#define SEAT(thread) thread
#endif
bool inside[2];      /* of each seat, as others see it */
bool buffered[2];    /* a store that they do not see yet, by thread */
bool value[2];
bool sleeps[2];      /* somebody sleeps on the word of that seat */
byte in_section;

/* Those of one thread go in order: the next waits until the one before is out. */
inline store_inside(thread, what)
{
    atomic { !buffered[thread] -> buffered[thread] = true; value[thread] = what }
}

inline drain(thread)
{
    if
    :: buffered[thread] -> inside[SEAT(thread)] = value[thread]; buffered[thread] = false
    :: else
    fi
}

inline section()
{
    atomic { in_section++; assert(in_section == 1) }
    in_section--
}

/* Under the mutex. The kernel looks at the word when it puts a thread to sleep, and a wake ends that. */
inline revoke(seat_of)
{
    owner = NOBODY;
#ifndef NO_BARRIER
    atomic { drain(0); drain(1) }
#endif
#ifndef NO_QUIET
    do
    :: atomic { inside[SEAT(seat_of)] -> sleeps[SEAT(seat_of)] = true };
       !sleeps[SEAT(seat_of)]
    :: !inside[SEAT(seat_of)] -> break
    od
#endif
}

/* A load sees what its own processor has stored before; what others have, once it is out. */
inline leave_seat(thread)
{
    store_inside(thread, false);
    if
    :: owner != thread ->
        /* A system call. */
        atomic { drain(thread) }
#ifndef NO_WAKE
        sleeps[SEAT(thread)] = false
#endif
    :: else
    fi
}

active [2] proctype processor()
{
end:
    do
    :: atomic { buffered[_pid] -> drain(_pid) }
    od
}

proctype caller(byte self)
{
    byte calls, found;
    for (calls : 1 .. CALLS) {
        if
        :: owner == self ->
            store_inside(self, true);
#ifdef NO_AGAIN
            section();
            leave_seat(self);
            goto next
#else
            if
            :: owner == self ->
                section();
                leave_seat(self);
                goto next
            :: else -> leave_seat(self)
            fi
#endif
        :: else
        fi;
        atomic { !mutex -> mutex = true; drain(self) }
        found = owner;
        if
        :: found != NOBODY && found != self -> revoke(found)
        :: else
        fi;
        /* As after many calls in a row. */
        if
        :: owner = self
        :: skip
        fi;
        section();
        mutex = false;
next:   skip
    }
}

active proctype visitor()
{
    byte visits, found;
    run caller(0);
    run caller(1);
    for (visits : 1 .. VISITS) {
        atomic { !mutex -> mutex = true }
        found = owner;
        if
        :: found != NOBODY -> revoke(found)
        :: else
        fi;
        section();
        mutex = false
    }
}
