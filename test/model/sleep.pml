/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Falling asleep and ringing (doc/wire-protocol.md, section 9), one queue pair, one direction, with
 * stores in flight both ways. Spin looks at every order. Lost is a state in which nothing can happen
 * any more while the receiver sleeps and a message lies there: an invalid end state.
 *
 * The channels are posted writes: what one host stores into the other, in order, as late as can be.
 * Answers have one of their own: they may pass messages and be passed by them. The sender's own stores (its gate) wait in a store buffer until they are drained, or the control
 * thread's barrier (membarrier) drains them. Doorbells are level interrupts, cleared before they are
 * acted upon. Control ticks and the looks after a doorbell are left out: they hide what is lost.
 * What remains of the looking is that of a sleep that is not confirmed.
 *
 * One step of the protocol left out, each of which has to fail:
 *   -DNO_LOOK     a sleep that is not confirmed is not looked after
 *   -DNO_COUNT    any answer confirms, however many messages it speaks of
 *   -DNO_BARRIER  the control thread does not drain the sender's stores
 *   -DNO_QUIET    it does not look whether a burst is inside
 *   -DNO_FIRST    the burst that meets the alert rings before it publishes
 */
#define MESSAGES 2 /* and as many sleeps: each ends with a message */

mtype = { line, bell, request };

chan to_receiver = [4] of { mtype };             /* line; bell */
chan answers = [2] of { byte, byte };            /* number, published */
chan to_sender = [4] of { mtype, byte };         /* request number; bell */

/* The sender's host. */
byte gate = 2;       /* word at the gate: even opened, odd alerted */
bool busy;           /* as the control thread sees it */
bool busy_buffered;  /* a store of busy that it does not see yet */
bool busy_value;
byte sent;           /* published, as the control thread reads it */
byte asked;          /* request word */
bool sender_bell;

/* The receiver's host. */
byte arrived;        /* messages in the ring */
byte taken;
bool armed;
byte number;
byte consumed;
byte said_number, said_published;
bool receiver_bell;
bool event;
bool looking;        /* a re-check is set */

inline store_busy(value)
{
    /* One buffered store at a time: the next waits until this one is out. */
    atomic { !busy_buffered -> busy_buffered = true; busy_value = value }
}

active proctype drain()
{
end:
    do
    :: atomic { busy_buffered -> busy = busy_value; busy_buffered = false }
    od
}

/* A lcore that sends, one message a burst. */
active proctype sender()
{
    byte word, seen = 2;
    do
    :: sent < MESSAGES ->
        store_busy(true);
        word = gate;
#ifdef NO_FIRST
        if
        :: word != seen && word % 2 == 1 -> to_receiver ! bell
        :: else
        fi;
#endif
        to_receiver ! line;
        sent++;
        if
        :: word != seen ->
            if
#ifndef NO_FIRST
            :: word % 2 == 1 -> to_receiver ! bell
#endif
            :: else
            fi;
            seen = word
        :: else
        fi;
        store_busy(false)
    :: else -> break
    od
}

/* The sender's control thread: acts when rung, and again while a burst is inside. */
active proctype control()
{
    byte alerted, answered, wanted;
end:
    do
    :: atomic { sender_bell -> sender_bell = false };
again:
        wanted = asked;
        if
        :: wanted != answered ->
            if
            :: wanted != alerted -> gate = (gate + 2) | 1; alerted = wanted
            :: else
            fi;
#ifndef NO_BARRIER
            atomic {
                if
                :: busy_buffered -> busy = busy_value; busy_buffered = false
                :: else
                fi
            }
#endif
#ifndef NO_QUIET
            if
            :: busy -> goto again
            :: else
            fi;
#endif
            answered = wanted;
            answers ! wanted, sent
        :: else
        fi
    od
}

/* The way to the receiver's host. */
active proctype delivery()
{
    byte n, p;
end:
    do
    :: atomic { to_receiver ? line -> arrived++ }
    :: atomic { to_receiver ? bell -> receiver_bell = true }
    :: atomic { answers ? n, p -> said_number = n; said_published = p }
    od
}
active proctype delivery_back()
{
    byte n;
end:
    do
    :: atomic { to_sender ? request, n -> asked = n }
    :: atomic { to_sender ? bell, n -> sender_bell = true }
    od
}

/* The receiver's interrupt and its re-checks: each under the lock, so in one step but for the
 * clearing of the doorbell, which comes before. */
active proctype interrupt()
{
end:
    do
    :: atomic { receiver_bell -> receiver_bell = false };
        atomic {
            if
            :: armed && arrived > consumed -> armed = false; event = true
            :: else
            fi
        }
    :: atomic {
            looking -> looking = false;
            if
            :: !armed
            :: armed && arrived > consumed -> armed = false; event = true
#ifdef NO_COUNT
            :: armed && arrived == consumed && said_number == number
            :: armed && arrived == consumed && said_number != number -> looking = true
#else
            :: armed && arrived == consumed && said_number == number && said_published == consumed
            :: armed && arrived == consumed && !(said_number == number && said_published == consumed) ->
                looking = true
#endif
            fi
        }
    od
}

active proctype receiver()
{
    bool sleep;
    do
    :: taken == MESSAGES -> break
    :: taken < MESSAGES && arrived > taken -> taken++
    :: taken < MESSAGES && arrived == taken ->
        atomic {
            event = false;
            consumed = taken;
            sleep = arrived == consumed;
            if
            :: sleep ->
                number++;
                armed = true;
#ifndef NO_LOOK
                looking = true;
#endif
                to_sender ! request, number
            :: else
            fi
        }
        if
        :: sleep ->
            to_sender ! bell, 0;
            event; /* asleep */
            atomic { armed = false; event = false }
        :: else
        fi
    od;
    assert(taken == MESSAGES)
}
