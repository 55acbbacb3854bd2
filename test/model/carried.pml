/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One direction of a connection through two daemons (doc/socket-protocol.md, section 4): the words of the sender's line
 * as its daemon finds them, on their way, and as the receiver finds them. direction.pml takes for granted that stores
 * arrive in order and none in a ring that is used anew; here each word is stored and read by itself, by five processes
 * that wait for nobody.
 *
 * Two rings one after the other. A message carries one byte at most; heads count from the switch.
 *
 * Variants: each is searched.
 *   variant WORDS   as it is
 */
/* One rule left out or broken, by the number in the variable WRONG of the environment, and the variant that has
 * to find it. */
#define MARK_LAST   1  /* WORDS,  T1: the mark is read behind the head */
#define MARK_EARLY  2  /* WORDS,  T2: the mark is sent before the last byte */
#define NO_CLEAR    3  /* WORDS,  T3: the sender's line is not cleared at the grant */
#define OLD_WORDS   4  /* WORDS,  T4: words of a ring that is over are stored again */
#define SEEN_FIRST  5  /* WORDS,  T5: seen is read before the generation */
#define FIN_BESIDE  6  /* WORDS,  T6: FIN_SEEN does not go behind the grant */

#define RINGS 2
#define BYTES 2

#define NONE 0
#define REVERT 1
#define END 2
#define RETURN 3

byte wrong;

/* The memory at the sender's host: line and asks. */
byte a_want, a_generation, a_head, a_mark, a_granted;
bool a_started, a_seen;
/* The one at the receiver's, and whose words they are. */
byte b_want, b_head, b_mark, b_granted, b_owner;
bool b_started, b_seen;
byte b_fin;           /* FIN_SEEN of that ring, said to the receiver's daemon */

chan to_b = [1] of { byte, byte, bool, byte, byte }; /* want, generation, started, head, mark */
chan to_a = [1] of { byte, bool, byte };             /* granted, seen, fin */
chan beside = [1] of { byte };

/* What is true, whoever knows it. */
byte last[3];         /* the head that a ring ends with */
bool seen_there[3];
bool is_over;
bool is_ended;        /* the sender */
byte again;           /* messages of the sender's daemon that the other direction is the reason for */

proctype sender()
{
    byte g = 1;
    do
    :: g <= RINGS ->
        a_want = g;
        a_granted == g;
        if
        :: g < RINGS -> last[g] = 0; a_generation = g; a_mark = RETURN
        :: skip ->
            a_generation = g; a_started = true;
            do
            :: a_head < BYTES -> a_head++
            :: break
            od;
            last[g] = a_head;
            if
            :: g == RINGS -> a_mark = END
            :: a_seen -> assert(seen_there[g]); a_mark = REVERT
            fi
        fi;
        g++
    :: else -> break
    od;
    is_ended = true
}

proctype senders_daemon()
{
    byte granted, sent, want, generation, head, mark, f;
    bool started, s;
    byte m_want, m_generation, m_head, m_mark; /* the last message */
    bool m_started, is_new;
end:
    do
    :: nfull(to_b) ->
        want = a_want;
        if
        :: wrong != MARK_LAST -> mark = a_mark; head = a_head
        :: else -> head = a_head; mark = a_mark
        fi;
        started = a_started;
        generation = a_generation;
        d_step {
            if
            :: granted == 0 || generation != granted -> generation = 0; started = false; head = 0; mark = NONE
            :: else
            fi;
            if
            :: started && head > sent ->
                sent++; head = sent;
                if
                :: wrong != MARK_EARLY -> mark = NONE
                :: else
                fi
            :: else
            fi;
            is_new = want != m_want || generation != m_generation || started != m_started || head != m_head || mark != m_mark;
            m_want = want; m_generation = generation; m_started = started; m_head = head; m_mark = mark;
            want = 0; generation = 0; started = false; head = 0; mark = NONE
        }
        if
        :: is_new -> to_b ! m_want, m_generation, m_started, m_head, m_mark
        :: !is_new && again > 0 -> again--; to_b ! m_want, m_generation, m_started, m_head, m_mark
        :: !is_new && again == 0 ->
end_sleep:  (a_want != m_want || nempty(to_a) || nempty(beside) || again > 0 ||
                (granted != 0 && a_generation == granted &&
                 (a_started != m_started || a_head != m_head || a_mark != m_mark || m_generation == 0)))
        fi
    :: to_a ? f, s, head ->
        if
        :: f == granted + 1 ->
            granted = f; sent = 0;
            if
            :: wrong != NO_CLEAR -> a_mark = NONE; a_started = false; a_head = 0; a_generation = 0
            :: else -> a_head = 0
            fi;
            a_seen = false; a_granted = f
        :: else
        fi;
        a_seen = s;
        assert(head <= a_granted);
        f = 0; s = false; head = 0
    :: beside ? f -> assert(f <= a_granted); f = 0
    od
}

proctype receivers_daemon()
{
    byte granted, want, generation, head, mark, m_fin;
    byte b_last, b_last_mark; /* as stored, of the ring that is known to be granted */
    bool started, s, m_seen, is_new, b_last_started;
end:
    do
    :: to_b ? want, generation, started, head, mark ->
        if
        :: generation == granted && generation > 0 &&
           (head != b_last || started != b_last_started || mark != b_last_mark || wrong == OLD_WORDS) ->
            d_step {
                b_owner = generation;
                b_head = head; b_started = started; b_mark = mark;
                b_last = head; b_last_started = started; b_last_mark = mark
            }
        :: (generation == granted && (generation == 0 || head == b_last && started == b_last_started && mark == b_last_mark && wrong != OLD_WORDS))
        :: generation != granted -> assert(generation == 0 || generation + 1 == granted)
        fi;
        b_want = want;
        want = 0; generation = 0; started = false; head = 0; mark = NONE
    :: nfull(to_a) ->
        if
        :: wrong == SEEN_FIRST -> s = b_seen; head = b_granted
        :: else -> head = b_granted; s = b_seen
        fi;
        d_step {
            is_new = head != granted || s != m_seen;
            if
            :: head != granted -> b_last = 0; b_last_started = false; b_last_mark = NONE
            :: else
            fi;
            granted = head; m_seen = s; head = 0; s = false
        }
        if
        :: b_fin != m_fin && wrong == FIN_BESIDE -> m_fin = b_fin; beside ! m_fin; to_a ! granted, m_seen, 0
        :: b_fin != m_fin && wrong != FIN_BESIDE && b_fin == granted -> m_fin = b_fin; to_a ! granted, m_seen, m_fin
        :: (b_fin == m_fin || (wrong != FIN_BESIDE && b_fin != granted)) && is_new -> to_a ! granted, m_seen, m_fin
        :: (b_fin == m_fin || (wrong != FIN_BESIDE && b_fin != granted)) && !is_new ->
end_sleep:  (nempty(to_b) || b_granted != granted || b_seen != m_seen || b_fin != m_fin || is_over)
        fi
    od
}

proctype receiver()
{
    byte g, head, mark;
    bool started;
    is_over = true;
end:
    do
    :: is_over && b_want == g + 1 ->
        d_step { b_mark = NONE; b_started = false; b_head = 0 }
        b_seen = false; is_over = false; g++; b_granted = g;
        if
        :: g == RINGS -> b_fin = g
        :: skip
        fi
    :: !is_over && (b_mark != NONE || (b_started && !b_seen)) ->
        d_step { mark = b_mark; started = b_started; head = b_head; assert(b_owner == g) }
        if
        :: started && !b_seen -> seen_there[g] = true; b_seen = true
        :: else
        fi;
        if
        :: mark != NONE ->
            assert(head == last[g] && (mark == RETURN) == !started);
            is_over = true
        :: else
        fi;
        mark = NONE; started = false; head = 0
    od
}

proctype quiet()
{
    timeout;
    assert(is_ended && is_over && b_granted == RINGS)
}

init
{
    atomic {
        c_code { now.wrong = getenv("WRONG") ? atoi(getenv("WRONG")) : 0; };
        again = 1;
        run sender(); run senders_daemon(); run receivers_daemon(); run receiver(); run quiet()
    }
}
