/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One direction of a shadowed TCP connection (doc/socket-protocol.md): the switch to a ring at a byte offset,
 * the way back, the end. Spin looks at every order. Each byte's value is its offset, so the receiver knows at
 * once what is lost, doubled or out of order; what never ends or is slept through is an assertion of
 * quiet(), which runs when nothing else can.
 *
 * What is late: TCP's bytes and FIN (FIFO), RST (overtakes them), the sender's stores into the ring and its line
 * (in order, and behind TCP or before it), the receiver's line (any older state of it), and messages of
 * the daemons (in order). A ring's byte is told by the head alone: data are stored before it, on the same way.
 *
 * Variants: each is searched.
 *   variant PLAIN   nobody dies, two rings one after the other
 *   variant DEATHS  the sender's processes (two, with one descriptor) or the receiver's die
 *   variant LOSS    the rings are lost: link, or one of the daemons; the sender may die, too
 */
/* One rule left out or broken, by the number in the variable WRONG of the environment, and the variant that has
 * to find it. */
#define TCP_IN_RING     1  /* PLAIN,  S1: the sender writes by TCP behind the switch */
#define NO_ROOM         2  /* DEATHS, S2: it does not look for room in the ring */
#define NO_SEEN         3  /* DEATHS, S3: it goes back to TCP before the switch is known to be seen */
#define NO_GENERATION   4  /* PLAIN,  S3: it takes the word of an older ring for it */
#define NO_MARK         5  /* DEATHS, S4: it goes back without a mark */
#define NO_DRAIN        6  /* PLAIN,  R1: the receiver takes from the ring before it has taken all of TCP's */
#define NO_BOUND        7  /* DEATHS, R2: it takes from TCP beyond the switch */
#define REVERT_EARLY    8  /* PLAIN,  R3: it goes back at the mark, not at the mark's offset */
#define END_EARLY       9  /* PLAIN,  R4: it ends at the mark, not at the mark's offset */
#define FIN_IS_END      10 /* PLAIN,  R5: it ends at the FIN while a ring is granted */
#define RST_IS_END      11 /* PLAIN,  R6: it shows an end for a reset */
#define REUSE           12 /* DEATHS, R7: it grants anew before the ring is over */
#define UNASKED         13 /* DEATHS, R7: it grants anew before the sender wants it */
#define GRANT_AFTER_FIN 14 /* DEATHS, R7: it grants anew after it has told of a FIN */
#define HAND_OVER       15 /* PLAIN,  R8: it hands the descriptor to a program without the preload before the ring is over */
#define NO_ASK          16 /* PLAIN,  D1: nobody goes back for a sender that does not run */
#define NO_WORD         17 /* DEATHS, D2: the sender's daemon does not say the end for a sender that could not */
#define NO_RETURN       18 /* DEATHS, D3: a grant that comes too late is not returned */
#define NO_RESET        19 /* DEATHS, D4: the end of a process that left unread bytes is an orderly one */
#define NO_GONE         20 /* DEATHS, D5: the sender does not hear that nobody receives any more */
#define GONE_TCP        21 /* DEATHS, D5: it goes on by TCP although bytes in the ring were not taken */
#define NO_LOCK         22 /* DEATHS, L1: two senders at once */
#define STORE_FIRST     23 /* DEATHS, L2: a step is stored before it is recorded */
#define NO_REPAIR       24 /* DEATHS, L2: what a dead holder of the lock recorded is not stored again */
#define NO_RECOUNT      25 /* DEATHS, L3: TCP's bytes that a dead holder of the lock took are not counted */
#define LOSS_SENDER     26 /* LOSS,   F1: at the loss the sender goes on by TCP although it has switched */
#define LOSS_RECEIVER   27 /* LOSS,   F2: at the loss the receiver goes on by TCP although it has seen the switch */
#define LOSS_FIN        28 /* LOSS,   F3: at the loss it takes a FIN for the end although the sender may have switched */
#define LOSS_MARKED     29 /* LOSS,   F4: at the loss it resets although ring and mark are there */
#define LOSS_ALL        30 /* LOSS,   F5: at the loss it resets what has no ring */
#define NO_COMPARE      31 /* PLAIN,  C1: the own count is not compared with the kernel's */

#ifdef PLAIN
#define BYTES 3
#define RINGS 2
#define WRITERS 1
#define REVERTS 2
#endif
#ifdef DEATHS
#define BYTES 3
#define RINGS 2
#define WRITERS 2
#define REVERTS 1
#endif
#ifdef LOSS
#define BYTES 3
#define RINGS 1
#define WRITERS 1
#define REVERTS 1
#endif
#define ROOM 2 /* bytes of a ring */
#define WIRE 2 /* bytes that TCP takes before it is full */

/* Marks: the last thing that is said of a ring. */
#define NONE 0
#define END 1
#define REVERT 2
#define RETURN 3 /* never used */
#define RESET 4

/* The program's doings and faults that are allowed in this run. They are chosen at first: what may still be chosen
 * would keep quiet() from running. */
byte may_revert;       /* so many times */
bool may_close, may_abort, may_unseen, may_write_unseen, may_read_unseen, may_ask, may_hand_over;
bool may_kill, may_kill_one, may_kill_receiver, may_kill_reader, may_lose;
byte rings;
byte wrong;           /* the rule that is left out */

/* What is true, whoever knows it. */
byte written;         /* accepted from the program */
byte by_ring;         /* the last of them that went by a ring, and one */
byte delivered;       /* given to the program */
bool aborted;         /* by the program or its death */
bool must_reset;      /* aborted, and not ended before */
bool lost, cut;       /* the rings are lost; a store was lost */
bool had_ring;        /* the direction had one then */

/* TCP */
chan wire = [WIRE] of { byte };
bool fin, rst;        /* sent */
bool rst_back;        /* sent by the receiver */

/* The sender's record, in memory that its processes and its daemon share. */
mtype = { tcp, granted, ring, ended, broken };
mtype s = tcp;
byte s_generation, s_wanted, s_count, s_start, s_mark, s_end;
bool s_lost, no_rings;
#define FREE 9
byte holder = FREE;   /* of the lock */
mtype = { start, head, mark, want, count, start_head, native_fin, stored, record };
mtype doing[2];       /* recorded, and not stored yet */
bool alive[2];
bool left_unread;     /* the dead had unread bytes in the other direction */

/* The sender's line and the ring: on their way, and as the receiver sees them. */
chan stores = [4] of { byte, mtype, byte, byte };
byte v_start, v_head, v_mark, v_end, v_wanted;
bool v_started;

/* The receiver */
mtype = { seen, eof, reset, gone, native, suspect };
mtype r = tcp;        /* tcp, granted, seen (drains TCP, then the ring), suspect, native, eof, reset, gone */
byte r_generation, r_count, r_position;
bool r_lost, told;    /* told: FIN reported to the sender's daemon */
bool asked;

/* The receiver's line: as it wrote it, and as the sender sees it. */
byte b_generation, b_taken, a_generation, a_taken;
bool b_seen, b_ask, a_seen, a_ask;

/* From the receiver's daemon to the sender's. */
mtype = { grant, fin_seen };
chan control = [3] of { mtype, byte };

#define ROOM_LEFT (s_count - (a_taken > s_start -> a_taken : s_start) < ROOM)
#define CONFIRMED (a_seen && (a_generation == s_generation || wrong == NO_GENERATION))
#define ASKED (a_ask && a_generation == s_generation)

#define MAY_ENTER (alive[me] && doing[me] == 0 && (holder == FREE || wrong == NO_LOCK))
#define ENTER(what) holder = me; doing[me] = what
#define LEAVE holder = FREE; doing[me] = 0

/* All words of the sender's line again: they are the same ones, or newer. */
inline store_all()
{
    if
    :: s_mark == RETURN -> stores ! s_generation, mark, RETURN, 0
    :: s_mark != RETURN && s_generation > 0 && (s == ring || s_mark != NONE) ->
        stores ! s_generation, start_head, s_start, (s_mark == NONE -> s_count : s_end);
        if
        :: s_mark != NONE -> stores ! s_generation, mark, s_mark, s_end
        :: else
        fi
    :: else
    fi
}

/* A process of the sender. Each step is one of a call that holds the lock. */
proctype sender(byte me)
{
end:
    do
    /* A write by TCP: the kernel takes it, then it is counted. */
    :: atomic {
            MAY_ENTER && written < BYTES && !fin && !rst && !rst_back && nfull(wire) &&
                (s == tcp || s == granted || (s == ring && wrong == TCP_IN_RING)) ->
            wire ! written; written++; ENTER(count)
        }
    :: atomic { alive[me] && doing[me] == count -> s_count++; LEAVE }

    /* A ring is wanted: said behind all stores into the one before. */
    :: atomic { MAY_ENTER && s == tcp && !no_rings && written < BYTES && s_wanted == s_generation && s_wanted < rings &&
            nfull(stores) ->
            s_wanted++; stores ! s_wanted, want, 0, 0 }

    /* The switch: recorded, then stored. */
    :: atomic { MAY_ENTER && written < BYTES && s == granted && nfull(stores) && wrong != STORE_FIRST &&
            (s_count == written || wrong == NO_COMPARE) -> /* written: as the kernel counts, nothing is in a ring */
            s_start = s_count; s = ring; ENTER(start) }
    :: atomic { alive[me] && doing[me] == start && nfull(stores) -> stores ! s_generation, start, s_start, 0; doing[me] = stored }
    :: atomic { MAY_ENTER && written < BYTES && s == granted && nfull(stores) && wrong == STORE_FIRST ->
            s_start = s_count; stores ! s_generation, start, s_start, 0; ENTER(record) }
    :: atomic { alive[me] && doing[me] == record -> s = ring; LEAVE }

    /* A write into the ring. */
    :: atomic { MAY_ENTER && written < BYTES && s == ring && (ROOM_LEFT || wrong == NO_ROOM) && nfull(stores) ->
            written++; s_count++; by_ring = s_count; ENTER(head) }
    :: atomic { alive[me] && doing[me] == head && nfull(stores) ->
            stores ! s_generation, head, s_count, 0; doing[me] = stored }

    /* Back to TCP. */
    :: atomic { MAY_ENTER && may_revert > 0 && s == ring && (CONFIRMED || wrong == NO_SEEN) && nfull(stores) ->
            may_revert--; s = tcp;
            if
            :: wrong != NO_MARK -> s_mark = REVERT; s_end = s_count; ENTER(mark)
            :: else
            fi
        }
    :: atomic { MAY_ENTER && may_revert > 0 && s == granted && nfull(stores) ->
            may_revert--; s = tcp; s_mark = RETURN; ENTER(mark) }

    /* The end: shutdown, or close by the last holder. */
    :: atomic { MAY_ENTER && may_close && !fin && !rst && (s == ring || s == granted) ->
            may_close = false;
            s_mark = (s == ring -> END : RETURN); s_end = s_count; s = ended; ENTER(mark) }
    :: atomic { MAY_ENTER && may_close && !fin && !rst && s == tcp ->
            may_close = false; s = ended; ENTER(native_fin) }
    :: atomic { alive[me] && doing[me] == mark && nfull(stores) ->
            stores ! s_generation, mark, s_mark, s_end;
            if
            :: s == ended -> doing[me] = native_fin
            :: else -> doing[me] = stored
            fi
        }
    :: atomic { alive[me] && doing[me] == stored -> LEAVE }
    :: atomic { alive[me] && doing[me] == native_fin -> fin = true; LEAVE }

    /* Reset: SO_LINGER 0, or closed with bytes unread. A kernel's RST, no mark. */
    :: atomic { MAY_ENTER && may_abort && !rst && s != broken ->
            may_abort = false; aborted = true; must_reset = !fin && s != ended; s = broken; rst = true }

    /* Bytes that the preload does not see: by stdio, or a system call. */
    :: atomic { alive[me] && may_write_unseen && written < BYTES && !fin && !rst && !rst_back && nfull(wire) &&
            (s == tcp || s == granted) ->
            may_write_unseen = false; wire ! written; written++ }

    /* shutdown by somebody that the preload does not see; writes go on until they are found to fail. */
    :: atomic { alive[me] && may_unseen && !fin && !rst && s != ended && s != broken -> may_unseen = false; fin = true }
    od
}

/* The sender's daemon, and what a process that lives does for a dead one. */
proctype daemon()
{
    byte x;
end:
    do
    :: atomic { holder < FREE && !alive[holder] && empty(stores) ->
            if
            :: wrong == NO_REPAIR
            :: wrong != NO_REPAIR && doing[holder] == count ->
                s_count++ /* as the kernel counts them; else it would never switch */
            :: wrong != NO_REPAIR && doing[holder] == native_fin -> fin = true
            :: else -> store_all()
            fi;
            doing[holder] = 0; holder = FREE
        }
    :: atomic { !lost && holder == FREE && nfull(stores) && control ? [grant, x] -> control ? grant, x;
            if
            :: s == tcp && !no_rings -> s = granted; s_generation = x; s_mark = NONE
            :: else ->
                if
                :: wrong != NO_RETURN -> s_generation = x; s_mark = RETURN; stores ! x, mark, RETURN, 0
                :: else
                fi
            fi
        }
    /* A FIN is proof that nothing more can be written. */
    :: atomic { !lost && holder == FREE && empty(stores) && control ? [fin_seen, x] -> control ? fin_seen, x;
            if
            :: wrong == NO_WORD
            :: else ->
                if
                :: s == ring -> s = ended; s_mark = (left_unread && wrong != NO_RESET -> RESET : END); s_end = s_count
                :: s == granted -> s = ended; s_mark = RETURN
                :: else
                fi;
                store_all()
            fi
        }
    /* x: what the receiver took. Nothing is left in the ring, or the end is a reset. */
    :: atomic { !lost && holder == FREE && control ? [gone, x] -> control ? gone, x;
            if
            :: wrong == NO_GONE
            :: wrong != NO_GONE && s == ring && s_count != s_start && x < s_count && wrong != GONE_TCP ->
                no_rings = true; s = broken; rst = true
            :: else ->
                no_rings = true;
                if
                :: s == granted || s == ring -> s = tcp
                :: else
                fi
            fi
        }
    :: atomic { !lost && holder == FREE && nfull(stores) && ASKED && s == ring && CONFIRMED && wrong != NO_ASK ->
            s = tcp; s_mark = REVERT; s_end = s_count; stores ! s_generation, mark, REVERT, s_end }
    :: atomic { !lost && holder == FREE && nfull(stores) && ASKED && s == granted && wrong != NO_ASK ->
            s = tcp; s_mark = RETURN; stores ! s_generation, mark, RETURN, 0 }

    /* The loss becomes known to the sender; what the other daemon had said is lost, or was heard before. */
    :: atomic { lost && !s_lost && holder == FREE -> s_lost = true; no_rings = true;
            if
            :: s == granted -> s = tcp
            :: s == ring && (alive[0] || alive[1]) ->
                if
                :: wrong == LOSS_SENDER -> s = tcp
                :: else -> s = broken; rst = true; had_ring = true
                fi
            :: else
            fi
        }
    :: atomic { lost && nempty(control) -> control ? _, _ }
    od
}

/* The ways between the hosts. After the receiver's daemon has told the loss, its fence keeps stores out. */
proctype ways()
{
    byte g, x, y;
    mtype what;
end:
    do
    :: d_step { !r_lost && !cut && nempty(stores) -> stores ? g, what, x, y;
            if
            :: r == gone
            :: else ->
                assert(g == r_generation || what == want); /* no store into a ring that is used anew */
                if
                :: what == want -> v_wanted = g
                :: what == start -> v_started = true; v_start = x
                :: what == head -> assert(x <= ROOM + (r_count > v_start -> r_count : v_start)); v_head = x
                :: what == mark -> v_mark = x; v_end = y
                :: what == start_head -> v_started = true; v_start = x;
                    assert(y <= ROOM + (r_count > v_start -> r_count : v_start)); v_head = y
                fi
            fi;
            g = 0; x = 0; y = 0; what = 0
        }
    /* What is lost is the rest: once a store was lost, none after it arrives. */
    :: d_step { lost && nempty(stores) -> cut = true; stores ? _, _, _, _ }
    :: d_step { !s_lost && (a_generation != b_generation || a_taken != b_taken || a_seen != b_seen || a_ask != b_ask) ->
            a_generation = b_generation; a_taken = b_taken; a_seen = b_seen; a_ask = b_ask }
    od
}

#define RING_EMPTY (!(v_started && v_start + r_position < v_head))
#define TCP_LEFT (r_count < v_start)
#define COMPLETE ((v_mark == END || v_mark == REVERT) && r_count == v_end)
/* Nothing is missing, even if it was not taken yet. */
#define ARRIVED ((v_mark == END || v_mark == REVERT) && (v_end == v_start || v_head >= v_end))

inline take(value)
{
    assert(value == delivered); /* in order, once, no gap */
    delivered++; r_count++; b_taken = r_count
}

inline at_end()
{
    assert(delivered == written && !must_reset)
}

inline give_ring()
{
    r_generation++; r = granted;
    v_started = false; v_mark = NONE; v_start = 0; v_head = 0; r_position = 0; told = false;
    b_generation = r_generation; b_seen = false; b_ask = false;
    control ! grant, r_generation
}

inline give_up()
{
    assert(aborted || (lost && had_ring));
    assert(rst || r != seen || !ARRIVED);
    r = reset; rst_back = true
}

proctype receiver()
{
    byte x;
end:
    do
    /* No ring: native. */
    :: atomic { (r == tcp || r == native) && nempty(wire) -> wire ? x; take(x); x = 0 }
    :: atomic { (r == tcp || r == native) && empty(wire) && fin -> r = eof; at_end() }
    :: atomic { (r == tcp || r == native) && rst -> give_up() }
    :: atomic { r == tcp && (r_generation < v_wanted || (wrong == UNASKED && r_generation < rings)) && !r_lost && !asked &&
            (!told || wrong == GRANT_AFTER_FIN) && (r_count == delivered || wrong == NO_COMPARE) && nfull(control) -> give_ring() }
    :: atomic { r == seen && wrong == REUSE && !TCP_LEFT && RING_EMPTY && r_generation < rings && nfull(control) -> give_ring() }
    :: atomic { may_hand_over && asked && (r == tcp || (wrong == HAND_OVER && (r == seen || r == granted))) ->
            may_hand_over = false; r = native }

    /* A ring is granted, and no switch in sight: native, but for FIN. */
    :: atomic { r == granted && nempty(wire) -> wire ? x; take(x); x = 0 }
    :: atomic { r == granted && v_started ->
            if
            :: r_count == delivered || wrong == NO_COMPARE -> r = seen; b_seen = true
            :: else -> aborted = true; give_up()
            fi
        }
    :: atomic { may_read_unseen && (r == tcp || r == granted) && nempty(wire) -> may_read_unseen = false;
            wire ? x; assert(x == delivered); delivered++; x = 0 }
    :: atomic { r == granted && !v_started && v_mark == RETURN -> r = tcp }
    :: atomic { r == granted && rst -> give_up() }

    /* The switch is seen: TCP up to its offset, then the ring, up to the mark. */
    :: atomic { r == seen && (TCP_LEFT || wrong == NO_BOUND) && nempty(wire) -> wire ? x; take(x); x = 0 }
    :: atomic { r == seen && !RING_EMPTY && (!TCP_LEFT || wrong == NO_DRAIN) -> take(v_start + r_position); r_position++ }
    :: atomic { r == seen && v_mark == END && (r_count == v_end || wrong == END_EARLY) -> r = eof; at_end() }
    :: atomic { r == seen && v_mark == REVERT && (r_count == v_end || wrong == REVERT_EARLY) -> r = tcp }
    :: atomic { r == seen && v_mark == RESET && r_count == v_end -> give_up() }
    :: atomic { r == seen && rst && RING_EMPTY && !COMPLETE ->
            if
            :: wrong == RST_IS_END -> r = eof; at_end()
            :: else -> give_up()
            fi
        }

    /* A process takes bytes of TCP and dies before it has counted them; another one goes on. */
    :: atomic { may_kill_reader && (r == granted || (r == seen && TCP_LEFT)) && nempty(wire) -> may_kill_reader = false;
            wire ? x; assert(x == delivered); delivered++; x = 0;
            if
            :: wrong != NO_RECOUNT -> r_count++; b_taken = r_count
            :: else
            fi
        }

    /* FIN while a ring is granted: the end is a mark. */
    :: atomic { wrong == FIN_IS_END && (r == granted || r == seen) && fin && empty(wire) -> r = eof; at_end() }
    :: atomic { (r == granted || r == seen) && fin && !told && !r_lost && nfull(control) -> told = true;
            control ! fin_seen, r_generation }

    :: atomic { may_ask && (r == granted || r == seen) && !r_lost -> may_ask = false; asked = true; b_ask = true }

    /* Nobody receives any more. */
    :: atomic { may_kill_receiver && nfull(control) && r != eof && r != reset && r != gone -> may_kill_receiver = false;
            r = gone;
            if
            :: !r_lost -> control ! gone, r_count
            :: else
            fi
        }
    :: atomic { r == gone && nempty(wire) -> wire ? _ }

    /* The loss becomes known to the receiver. */
    :: atomic { lost && !r_lost -> r_lost = true;
            had_ring = had_ring || r == granted || r == seen;
            if
            :: r == granted && !v_started && v_mark != RETURN -> r = suspect
            :: r == granted && v_started -> r = seen
            :: r == seen && wrong == LOSS_MARKED -> give_up()
            :: r == tcp && wrong == LOSS_ALL -> give_up()
            :: else
            fi
        }
    :: atomic { r == suspect && nempty(wire) -> wire ? x; take(x); x = 0 }
    :: atomic { r == suspect && rst -> give_up() }
    :: atomic { r == suspect && fin && empty(wire) ->
            if
            :: wrong == LOSS_FIN -> r = eof; at_end()
            :: else -> give_up()
            fi
        }
    :: atomic { r_lost && r == seen && RING_EMPTY && !COMPLETE && (!TCP_LEFT || (empty(wire) && (fin || rst))) ->
            if
            :: wrong == LOSS_RECEIVER -> r = tcp
            :: else -> give_up()
            fi
        }
    od
}

proctype faults()
{
    byte x;
end:
    do
    :: atomic { may_kill && (alive[0] || alive[1]) -> may_kill = false; alive[0] = false; alive[1] = false;
            if
            :: !fin && !rst -> fin = true
            :: !fin && !rst && s == ring -> fin = true; left_unread = true; aborted = true; must_reset = true
            :: !rst -> must_reset = !fin && s != ended; rst = true; aborted = true
            :: else
            fi
        }
    :: atomic { may_kill_one && alive[0] && alive[1] -> may_kill_one = false; alive[0] = false }
    :: atomic { may_lose -> may_lose = false; lost = true }
    od
}

proctype quiet()
{
    timeout;
    assert(holder == FREE);
    if
    :: r == eof || r == reset
    :: r == gone ->
        assert(s != ring || lost); /* a sender does not wait for room for ever */
        assert(s != tcp || s_mark != NONE || by_ring <= r_count || lost) /* and learns that bytes were thrown away */
    :: else ->
        assert(delivered == written); /* all that was sent has been delivered */
        assert(!fin && !rst);         /* the end was told */
        assert(written == BYTES || !(alive[0] || alive[1]) || rst_back || s == ended || s == broken);
        assert(!asked || r == tcp || r == native || r_lost)
    fi
}

inline either(flag)
{
    if
    :: flag = false
    :: flag = true
    fi
}

init
{
    atomic {
        c_code { now.wrong = getenv("WRONG") ? atoi(getenv("WRONG")) : 0; };
        alive[0] = true;
        if
        :: rings = RINGS
        :: rings = 0
        fi;
        either(may_close);
        if
        :: may_revert = REVERTS
        :: may_revert = 0
        fi;
#ifdef PLAIN
        if
        :: may_abort = true
        :: may_unseen = true
        :: may_write_unseen = true
        :: may_read_unseen = true
        :: skip
        fi;
        either(may_ask);
        may_hand_over = may_ask;
#endif
#ifdef DEATHS
        alive[1] = true;
        if
        :: may_kill = true
        :: may_kill_one = true
        :: may_kill_receiver = true
        :: may_kill_reader = true
        fi;
#endif
#ifdef LOSS
        either(may_kill);
        may_lose = true;
#endif
        run sender(0);
#if WRITERS == 2
        run sender(1);
#endif
        run daemon(); run ways(); run receiver(); run faults(); run quiet()
    }
}
