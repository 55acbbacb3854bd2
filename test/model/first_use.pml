/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who claims a connection (doc/socket-protocol.md, section 8): the process that first uses it, when it is the only
 * one that has it. Processes fork with it, use it, close it, go on as another program, die. Spin looks at every
 * order. Wrong is a claim while another process has the connection, or while a call of the kernel's is under way
 * on it; and one after the claim by who does not know of it. What is under way in a process is private to it,
 * `births`, `expected` and `holder` lie in memory that the processes share.
 *
 * Variants: each is searched.
 *   variant THREADS  a process with two threads, and its child
 *   variant FORKS    processes with one thread: a child, and a child's child
 *   variant EXECS    processes with one thread, which go on as other programs, or start them without a fork: programs
 *                    that take the place in the list, and programs that know nothing of it, which fork as well
 *   variant LATE     as FORKS, of a program that confines its children: the first one of a process, and any that is
 *                    born before the claim. Wrong is also one that is confined and has to do with rings
 */
/* One rule left out or broken, by the number in the variable WRONG of the environment, and the variant that has to find it. */
#define COUNT_LATE      1 /* FORKS,   H1: a child is counted when it runs, not before the fork */
#define NO_BIRTHS       2 /* FORKS,   H2: it is not looked whether a child was counted while the holders were looked at */
#define BIRTH_FIRST     3 /* FORKS,   H2: the number of births changes before the child is counted, not after */
#define NO_EXPECTED     4 /* FORKS,   H2: a child that is counted and does not run yet is not waited for */
#define EXEC_UNCOUNTED  5 /* EXECS,   H6: a process goes on as another program without being counted */
#define OFF_IN_CALL     6 /* THREADS, H3: a process takes itself off while a call of it is under way */
#define CALLS_UNCOUNTED 7 /* THREADS, H4: calls of the kernel's are not counted */
#define NO_WAIT         8 /* THREADS, H4: a call does not wait for the claim that is being made */
#define FORK_IN_CLAIM   9 /* THREADS, H5: a fork does not wait for the claim that is being made */
#define SPAWN_UNCOUNTED 10 /* EXECS,  H1: a program is started without a fork, and not counted */
#define ARRIVES_LATE    11 /* EXECS,  H6: the other program is no longer counted before it is in the list */
#define PASSED_ON       12 /* EXECS,  H7: a program takes the place that was meant for the one that has started it */
#define EARLY           13 /* LATE,    H8: a process claims before it has had a child */
#define CHILD_CLAIMS    14 /* LATE,    H8: its child may claim as well */

#ifdef THREADS
#define PROCESSES 2
#define STEPS 3  /* that a thread does */
#else
#define PROCESSES 3
#define STEPS 2
#endif
#ifdef EXECS
#define CHILD_STEPS 1
#else
#define CHILD_STEPS STEPS
#endif

byte wrong;

/* The kernel's. */
bool exists[PROCESSES], reaped[PROCESSES];
bool has[PROCESSES];          /* its descriptor is open */
byte in_kernel[PROCESSES];    /* calls under way on the connection */
byte born = 1;

/* What the processes share. */
byte births, expected;
bool holder[PROCESSES];

/* Of each process; a child begins with a copy. */
bool number[PROCESSES];       /* its table has the descriptor's number */
bool knows[PROCESSES];        /* it is claimed, with a record that a child shares */
bool claiming[PROCESSES];
byte calls[PROCESSES];        /* of the kernel's, counted */
byte users[PROCESSES];        /* calls that have the table's object: the last one ends it */
bool locked[PROCESSES];       /* no claim and no fork at a time */
#ifdef LATE
bool may_claim[PROCESSES];
bool gave_up[PROCESSES];
bool parent[PROCESSES];       /* it has had a child that has the connection */
bool may_confine[PROCESSES], confined[PROCESSES];
#define MAY_CLAIM(p) may_claim[p]
#else
#define MAY_CLAIM(p) true
#endif

bool claimed;

#define STAYS(q) (holder[q] && !reaped[q])

inline count_child()
{
    if
    :: wrong == BIRTH_FIRST -> births = births + 1; expected++
    :: else -> expected++; births = births + 1
    fi
}

inline end_object(p)
{
    holder[p] = false
}

/* A call of the kernel's, by who knows of no record. */
inline call_kernel(p)
{
    atomic { assert(!claimed || knows[p]); in_kernel[p]++ };
    atomic { assert(!claimed || knows[p]); in_kernel[p]-- }
}

inline try_claim(p)
{
#ifdef LATE
    assert(!confined[p]);
#endif
    atomic { !locked[p] -> locked[p] = true };
    if
    :: atomic { calls[p] == 0 && !knows[p] -> claiming[p] = true };
        seen = births;
        alone = (expected == 0 || wrong == NO_EXPECTED);
        q = 0;
        do
        :: q < PROCESSES ->
            if
            :: q != p && STAYS(q) -> alone = false
            :: else
            fi;
            q++
        :: else -> break
        od;
        q = 0;
        if
        :: alone && (births == seen || wrong == NO_BIRTHS) ->
            atomic {
                do
                :: q < PROCESSES ->
                    assert(q == p || !has[q] || !number[q]); /* or nothing but its close is to come */
                    assert(in_kernel[q] == 0);
                    q++
                :: else -> break
                od;
                q = 0;
                assert(!claimed);
                claimed = true
            };
            atomic { knows[p] = true; claiming[p] = false }
        :: else -> claiming[p] = false
        fi
    :: else
    fi;
    locked[p] = false
}

inline use(p)
{
    if
    :: atomic { number[p] -> users[p]++ };
        if
        :: !knows[p] && calls[p] == 0 && MAY_CLAIM(p) -> try_claim(p)
        :: else
        fi;
        if
        :: atomic { knows[p] -> skip } /* by the record */
        :: atomic { !knows[p] && (!claiming[p] || wrong == NO_WAIT) ->
                    calls[p] = (wrong == CALLS_UNCOUNTED -> calls[p] : calls[p] + 1) };
            call_kernel(p);
            calls[p] = (wrong == CALLS_UNCOUNTED -> 0 : calls[p] - 1)
        fi;
        atomic {
            users[p]--;
            if
            :: users[p] == 0 && !number[p] && holder[p] -> end_object(p)
            :: else
            fi
        }
    :: !number[p]
    fi
}

inline close_it(p)
{
    if
    :: atomic { number[p] -> number[p] = false };
        atomic {
            if
            :: users[p] == 0 || wrong == OFF_IN_CALL -> end_object(p)
            :: else /* the last user does */
            fi
        };
        has[p] = false
    :: !number[p]
    fi
}

inline fork_it(p)
{
    if
    :: atomic { (!locked[p] || wrong == FORK_IN_CLAIM) && born < PROCESSES -> locked[p] = true };
        if
        :: number[p] && !knows[p] && wrong != COUNT_LATE -> count_child()
        :: else
        fi;
        atomic {
            if
            :: born < PROCESSES ->
                exists[born] = true;
                has[born] = has[p];
                number[born] = number[p];
                knows[born] = knows[p];
#ifdef LATE
                may_confine[born] = !knows[p] || !parent[p];
                gave_up[born] = wrong != CHILD_CLAIMS;
                may_claim[born] = wrong == CHILD_CLAIMS;
                if
                :: number[p] ->
                    parent[p] = true;
                    may_claim[p] = may_claim[p] || !gave_up[p]
                :: else
                fi;
#endif
                run child(born);
                born++
            :: else
            fi
        };
        locked[p] = false
    :: born >= PROCESSES
    fi
}

#ifdef EXECS
/* A program that a process starts without a fork: it has no place in the list before it takes one. */
inline spawn_it(p)
{
    if
    :: atomic { !locked[p] && born < PROCESSES && !knows[p] -> locked[p] = true };
        if
        :: number[p] && wrong != SPAWN_UNCOUNTED -> count_child()
        :: else
        fi;
        atomic {
            if
            :: born < PROCESSES ->
                exists[born] = true;
                has[born] = has[p];
                number[born] = number[p];
                run program(born);
                born++
            :: else
            fi
        };
        locked[p] = false
    :: born >= PROCESSES || knows[p]
    fi
}
#endif

proctype child(byte p)
{
    byte step = 0, seen, q;
    bool alone;
    {
    if
    :: number[p] && !knows[p] ->
        holder[p] = true;
        if
        :: wrong == COUNT_LATE -> births = births + 1
        :: else -> expected--
        fi
    :: else
    fi;
    do
    :: step < CHILD_STEPS -> step++;
        if
        :: use(p)
        :: close_it(p); break
        :: fork_it(p)
#ifdef EXECS
        :: !knows[p] -> goto other_program
#endif
#ifdef LATE
        :: atomic { may_confine[p] -> confined[p] = true; assert(!knows[p]) }
#endif
        fi
    :: break
    od;
    goto over;
#ifdef EXECS
other_program:
    if
    :: number[p] && wrong != EXEC_UNCOUNTED -> count_child()
    :: else
    fi;
    run program(p);
#endif
over:
    skip
    } unless { !exists[p] }
}

#ifdef EXECS
/* What a process goes on as: with the descriptors, and nothing of what it knew. */
proctype program(byte p)
{
    byte seen, q;
    bool alone;
    {
    if
    :: goto arrives
    :: has[p] -> /* it knows nothing of all this */
        if
        :: call_kernel(p)
        :: atomic {
            born < PROCESSES ->
                exists[born] = true;
                has[born] = true;
                number[born] = true;
                run child_of_stranger(born);
                born++
            };
            if
            :: wrong == PASSED_ON -> goto arrives
            :: true
            fi
        fi
    fi;
    goto over;
arrives:
    if
    :: number[p] && wrong == ARRIVES_LATE -> expected--; holder[p] = true
    :: number[p] && wrong != ARRIVES_LATE -> holder[p] = true; expected--
    :: else
    fi;
    if
    :: use(p)
    :: close_it(p)
    fi;
over:
    skip
    } unless { !exists[p] }
}

/* The child of one that knows nothing. */
proctype child_of_stranger(byte p)
{
    {
    if
    :: has[p] -> call_kernel(p)
    :: else
    fi
    } unless { !exists[p] }
}
#endif

#ifdef THREADS
proctype second(byte p)
{
    byte seen, q;
    bool alone;
    { use(p); use(p) } unless { !exists[p] }
}
#endif

proctype first(byte p)
{
    byte step = 0, seen, q;
    bool alone;
    {
    do
    :: step < STEPS -> step++;
        if
        :: use(p)
        :: close_it(p); break
        :: fork_it(p)
#ifdef EXECS
        :: spawn_it(p)
#endif
        fi
    :: break
    od
    } unless { !exists[p] }
}

/* Kills one process, whatever it does, and later it is gone from the table of processes. */
proctype killer()
{
    byte p = 0;
    do
    :: p + 1 < PROCESSES -> p++
    :: break
    od;
    if
    :: atomic { exists[p] -> exists[p] = false; has[p] = false; in_kernel[p] = 0 };
        reaped[p] = true
    :: true
    fi
}

init
{
    atomic {
        c_code {
            char *text = getenv("WRONG");
            now.wrong = text ? atoi(text) : 0;
        };
        exists[0] = true;
        has[0] = true;
        number[0] = true;
        holder[0] = true;
#ifdef LATE
        may_claim[0] = wrong == EARLY;
#endif
        run first(0);
#ifdef THREADS
        run second(0);
#endif
        run killer()
    }
}
