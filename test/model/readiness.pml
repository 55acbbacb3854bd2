/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for several directions of shadowed connections (doc/socket-protocol.md, section 9): two threads in one
 * set, two rings, one of them registered while they sleep, TCP's readiness beside them, a signal. Spin looks at
 * every order. Slept through is a thread that sleeps in quiet(), which runs when nothing else can, while
 * something is ready that was not told, or after the handler of a signal ran in its call.
 *
 * A member is looked at, or it is armed and its bell is in the kernel's set, which tells one thread of an edge.
 *
 * A handler makes the time-out of its thread's sleep 0, so that a wait of the kernel's that begins behind it returns
 * at once. Where the kernel's call takes its time-out by value alone, signals are blocked from the look at the count of
 * handled ones until that call, which lets them in: then a handler runs before the look or in the wait, which are two of
 * the places here.
 *
 * A thread calls as often as it likes, and may never call again: a wake-up that went to it must not be the only
 * one. The plain stores of those who wake wait in a store buffer until a fence.
 *
 * Variants: each is searched.
 *   variant RINGS   two rings, one of them registered while they sleep
 *   variant KERNEL  one ring, and TCP's readiness
 *   variant SIGNAL  one ring, and a signal
 *   variant DOZE    one ring, and a thread that sleeps on a word of the memory
 */
/* One rule left out or broken, by the number in the variable WRONG of the environment, and the variant that has to find it. */
#define NO_LOOK         1  /* RINGS,  W1: who has armed does not look again */
#define NO_ARM_FENCE    2  /* RINGS,  W1: no fence between arming and looking again */
#define NO_WAKER_FENCE  3  /* RINGS,  W2: no fence between publishing and looking who is armed */
#define ONE_SLEEPER     4  /* RINGS,  W3: a flag of the set instead of a count of its sleepers */
#define CLEAR_LATE      5  /* SIGNAL, W4: the bell is read after looking, not before */
#define NO_PASS_ON      6  /* RINGS,  W5: who leaves something behind does not wake the next sleeper, nor arms it */
#define EDGE_DROPPED    7  /* KERNEL, W6: the kernel's edge is not kept when something else is told */
#define CLEAR_AFTER     8  /* KERNEL, W6: what is kept of the kernel is cleared by a read that found nothing, though an edge came since */
#define TOLD_LATE       9  /* SIGNAL, W7: edge triggered: told is what had arrived after the program read, not before */
#define NO_ADD_LOOK     10 /* RINGS,  W8: who registers does not look whether something is there */
#define NO_ZERO         11 /* SIGNAL, W9: a handler leaves the time-out of the sleep as it is */
#define NO_COUNT        12 /* SIGNAL, W9: the count of handled signals is not looked at */
#define TIME_LATE       13 /* SIGNAL, W9: the time-out is set behind that look, over what a handler has made of it */
#define WORD_LATE       14 /* DOZE,   W1: the word is read once the doze was asked for and nothing was found, not before */
#define NO_DOZE_LOOK    15 /* DOZE,   W1: who has asked does not look again */
#define WAKE_FIRST      16 /* DOZE,   W2: the word is changed behind the wake */

#ifdef RINGS
#define CALLS 1 /* of the second thread */
#else
#define CALLS 2
#endif

byte wrong;
bool edge;               /* the program registered edge triggered: it reads all after it was told */

byte arrived[2], stored[2]; /* messages in the rings; those still in a store buffer */
byte taken[2], told[2];
bool member[2];

byte queued;             /* TCP's messages in the kernel */
bool kernel_edge;        /* the kernel's entry of the shadow, edge triggered */
bool kept;               /* what is known of it here: something may be read */
byte edges;              /* and how often the kernel said so */

bool armed[2], arming[2]; /* a member's request; a store of it in a store buffer */
bool cold[2];            /* the set believes it is armed, and does not look at it */
bool bell[2];            /* an edge in the kernel's set */
bool unread[2];          /* CLEAR_LATE: the bell was told, and not read */
bool awaken;             /* the set's entry by which a thread wakes another */
byte sleepers;
bool locked;             /* the set */

bool asleep[2];
bool inside;             /* thread 0 in a call */
bool pending;            /* its signal: the kernel ends its wait */
bool handled;            /* its handler ran inside the call */
bool has_time;           /* the time-out of its sleep is not 0 */

#define RING_READY(d) (member[d] && (edge -> arrived[d] != told[d] : arrived[d] != taken[d]))
#define HOT_READY(d) (!cold[d] && RING_READY(d))
#define READY (HOT_READY(0) || HOT_READY(1) || kept)

proctype store_buffers()
{
end:
    do
    :: d_step { stored[0] > 0 -> arrived[0] = arrived[0] + stored[0]; stored[0] = 0 }
    :: d_step { stored[1] > 0 -> arrived[1] = arrived[1] + stored[1]; stored[1] = 0 }
    :: d_step { arming[0] -> armed[0] = true; arming[0] = false }
    :: d_step { arming[1] -> armed[1] = true; arming[1] = false }
    od
}

proctype waker(byte d; byte messages)
{
    bool asked;
    do
    :: messages > 0 -> messages--;
        stored[d]++;
        if
        :: wrong == NO_WAKER_FENCE
        :: else -> stored[d] == 0
        fi;
        asked = armed[d];
        if
        :: asked -> bell[d] = true
        :: else
        fi;
        asked = false
    :: else -> break
    od
}

proctype kernel()
{
    atomic { queued++; kernel_edge = true };
    atomic { queued++; kernel_edge = true }
}

/* With the lock of the set: members that are looked at are armed, and looked at once more. */
inline arm(d)
{
    if
    :: member[d] && !cold[d] ->
        if
        :: wrong == NO_ARM_FENCE -> arming[d] = true
        :: else -> armed[d] = true
        fi
    :: else
    fi
}

inline withdraw(d)
{
    armed[d] = false; arming[d] = false
}

/* After a look at them all: those that have nothing are left to their bells. */
inline leave_to_bell(d)
{
    if
    :: member[d] && !cold[d] && wrong != NO_LOOK && RING_READY(d) -> withdraw(d)
    :: member[d] && !cold[d] && !(wrong != NO_LOOK && RING_READY(d)) -> cold[d] = true
    :: else
    fi
}

inline read_bell(d)
{
    bell[d] = false; unread[d] = false
}

/* Who leaves the set while others sleep. */
inline pass_on()
{
    atomic {
        if
        :: sleepers > 0 -> !locked -> locked = true; arm(0); arm(1); passes = true
        :: else
        fi
    };
    atomic {
        if
        :: passes ->
            leave_to_bell(0); leave_to_bell(1);
            if
            :: READY -> awaken = true
            :: else
            fi;
            locked = false; passes = false
        :: else
        fi
    }
}

proctype registers()
{
    bool passes;
    atomic { !locked -> member[1] = true };
    if
    :: wrong == NO_ADD_LOOK
    :: else -> pass_on()
    fi
}

/* A signal for thread 0 while it is in a call. */
proctype signal()
{
    if
    :: atomic {
            inside ->
            if
            :: asleep[0] -> pending = true
            :: else -> handled = true; has_time = (wrong == NO_ZERO && has_time)
            fi
        }
    :: skip
    fi
}

/* Under the lock of the set. One event a call: more would be more of the same. */
inline look()
{
    if
    :: HOT_READY(0) -> got = 1;
        if
        :: wrong != TOLD_LATE -> told[0] = arrived[0]
        :: else
        fi
    :: HOT_READY(1) -> got = 2;
        if
        :: wrong != TOLD_LATE -> told[1] = arrived[1]
        :: else
        fi
    :: kept -> got = 3; kept = !edge
    :: else -> got = 0
    fi
}

inline one_less()
{
    if
    :: wrong == ONE_SLEEPER -> sleepers = 0
    :: else -> sleepers--
    fi
}

/* What the kernel has told of a member: its bell is read before it is looked at. */
inline rouse(d)
{
    if
    :: rung[d] && cold[d] -> withdraw(d); cold[d] = false;
        if
        :: wrong == CLEAR_LATE -> unread[d] = true
        :: else -> read_bell(d)
        fi
    :: else
    fi;
    rung[d] = false
}

proctype waiter(byte me; byte calls)
{
    byte got, d;
    bool passes;
    bool rung[2];
call:
    if
    :: goto gone
    :: calls > 0 -> calls--
    fi;
    inside = inside || me == 0;
lap:
    atomic {
        !locked -> look();
        if
        :: got != 0 -> goto tell
        :: else
        fi
    };
    atomic { !locked -> locked = true; arm(0); arm(1) };
    atomic {
        leave_to_bell(0); leave_to_bell(1);
        locked = false;
        if
        :: wrong != NO_LOOK && READY -> goto lap
        :: else
        fi;
        if
        :: wrong == ONE_SLEEPER -> sleepers = 1
        :: else -> sleepers++
        fi
    };
    atomic {
        if
        :: unread[0] -> read_bell(0)
        :: else
        fi;
        if
        :: unread[1] -> read_bell(1)
        :: else
        fi
    };
    if
    :: me == 0 ->
        has_time = (wrong != TIME_LATE);
        atomic {
            if
            :: handled && wrong != NO_COUNT -> one_less(); goto interrupted
            :: else
            fi
        };
        has_time = has_time || wrong == TIME_LATE
    :: else
    fi;
    asleep[me] = true;
end_asleep:
    atomic {
        bell[0] || bell[1] || awaken || kernel_edge || (me == 0 && (pending || !has_time)) ->
        asleep[me] = false;
        if
        :: me == 0 && (pending || (!has_time && !bell[0] && !bell[1] && !awaken && !kernel_edge)) ->
            pending = false; handled = true; one_less(); goto interrupted
        :: else
        fi;
        /* What the kernel's wait brings along: each edge is told to one thread. */
        if
        :: kernel_edge -> kernel_edge = false; edges++;
            kept = kept || !(wrong == EDGE_DROPPED && (bell[0] || bell[1] || awaken))
        :: else
        fi;
        rung[0] = bell[0]; bell[0] = false;
        rung[1] = bell[1]; bell[1] = false;
        awaken = false
    };
    atomic { one_less() };
    atomic { !locked -> rouse(0); rouse(1) };
    goto lap;
tell:
    if
    :: wrong != NO_PASS_ON -> pass_on()
    :: else
    fi;
    atomic {
        if
        :: me == 0 -> inside = false; handled = false; pending = false; has_time = false
        :: else
        fi
    };
    /* The program reads: one message, or all where it was told once. */
    if
    :: got == 3 -> d = edges;
        atomic {
            got = queued;
            queued = (edge || queued == 0 -> 0 : queued - 1)
        };
        atomic {
            if
            :: got == 0 && !edge && (d == edges || wrong == CLEAR_AFTER) -> kept = false
            :: else
            fi
        }
    :: got < 3 -> d = got - 1;
        atomic { taken[d] = (edge || arrived[d] == taken[d] -> arrived[d] : taken[d] + 1) };
        if
        :: wrong == TOLD_LATE -> told[d] = arrived[d]
        :: else
        fi
    fi;
    got = 0; d = 0;
    goto call;
interrupted:
    atomic { inside = false; handled = false; has_time = false; got = 0 };
    goto call;
gone:
    calls = 0
    skip
}

byte dozes, word;        /* a number that is new for each doze, and how many were ended */

proctype dozer(byte calls)
{
    byte value, number;
call:
    if
    :: calls > 0 -> calls--
    :: else -> goto gone
    fi;
lap:
    if
    :: arrived[0] != taken[0] -> taken[0] = arrived[0]; goto call
    :: else
    fi;
    value = word;
    number++;
    dozes = number;
    if
    :: arrived[0] != taken[0] && wrong != NO_DOZE_LOOK -> dozes = 0; goto lap
    :: else
    fi;
    if
    :: wrong == WORD_LATE -> value = word
    :: else
    fi;
    /* The kernel's wait compares and sleeps at once. */
    asleep[0] = (word == value);
end_dozing:
    !asleep[0];
    dozes = 0;
    goto lap;
gone:
    skip
}

proctype doze_waker(byte messages)
{
    byte asked, ended;
    do
    :: messages > 0 -> messages--;
        stored[0]++;
        stored[0] == 0;
        asked = dozes;
        if
        :: asked != 0 && asked != ended ->
            ended = asked;
            if
            :: wrong == WAKE_FIRST -> asleep[0] = false; word++
            :: else -> word++; asleep[0] = false
            fi
        :: else
        fi
    :: else -> break
    od
}

proctype quiet()
{
    timeout;
    if
    :: asleep[0] || asleep[1] ->
        assert(!kept && queued == 0 && arrived[0] == taken[0] && (!member[1] || arrived[1] == taken[1]));
        assert(!asleep[0] || !handled)
    :: else
    fi;
end:
    false
}

init
{
    atomic {
        c_code { now.wrong = getenv("WRONG") ? atoi(getenv("WRONG")) : 0; };
        if
        :: edge = true
        :: edge = false
        fi;
        member[0] = true;
        run store_buffers(); run quiet();
#ifdef DOZE
        run dozer(2); run doze_waker(2)
#else
        run waiter(0, 2); run waiter(1, CALLS);
#endif
#ifdef RINGS
        run waker(0, 1); run waker(1, 1); run registers()
#endif
#ifdef KERNEL
        run waker(0, 1); run kernel()
#endif
#ifdef SIGNAL
        run waker(0, 2); run signal()
#endif
    }
}
