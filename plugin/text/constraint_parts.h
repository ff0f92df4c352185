/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to constraint*.c.
 *
 *     constraint.c          the exact state of the text: threads, stacks, reading bytes
 *     constraint_sets.c     sets of threads with one stack, as states of a deterministic automaton
 *     constraint_allowed.c  walks the trie with these sets to find the allowed tokens
 */
#ifndef XM_PLUGIN_TEXT_CONSTRAINT_PARTS_H
#define XM_PLUGIN_TEXT_CONSTRAINT_PARTS_H

#include "plugin/text/constraint.h"
#include "plugin/text/grammar_parts.h"
#include "plugin/text/token_trie.h"

enum {
    MOST_THREADS = 1 << 15, /* threads of a text, and of a set */
    MOST_FRAMES = 1 << 19,  /* frames (open rules) of all threads */
    FRAMES_KEPT = 1 << 15,  /* above this number, unused frames are dropped */
    MOST_SETS = 1 << 14,    /* sets made within one call */
    SETS_KEPT = 1 << 12,    /* above this number, all sets are dropped before a call */
    MOST_MEMBERS = 1 << 21, /* places of all sets */
    MEMBERS_KEPT = 1 << 18, /* above this number, all sets are dropped before a call */
    MASKS_KEPT = 32,        /* masks of whole states (sets of ways) */
    LOCAL_MASKS_KEPT = 64,  /* masks of single sets */
    MOST_WAYS = 1 << 12     /* ways of reading one token */
};

/* A position in the automaton. `sub`: in a TEXT state the number of bytes read; in a UNITS state 0
 * between two units, else 1 + the node within the unit. `count`: complete units so far. */
struct xm_place {
    uint32_t state, count, sub;
};

#define XM_NO_FRAME UINT32_MAX

struct xm_thread {
    struct xm_place at;
    uint32_t stack; /* innermost frame; XM_NO_FRAME: the root rule */
};

/* An open rule. At its end it returns to `call`, a CALL state, as match number `count` of the call.
 * `parent`: the frame around it. */
struct xm_frame {
    uint32_t call, count, parent;
};

struct xm_threads {
    struct xm_thread *list; /* owned */
    size_t n, capacity;
};

/* A state of the deterministic automaton: the places of threads in one rule, without their
 * stacks. */
struct xm_set {
    uint32_t first, n; /* its n places, sorted, from `first` in `members` */
    uint32_t *next;    /* owned; [256] the set behind each byte; NULL: none known */
    bool leaves;       /* a place is the rule's end or a CALL state */
    /* Characters that lead from this set back to it, in any number or at most `room`: `loops`:
     * there are such; `ascii`: bits of those below 128; all_non_ascii: all others. */
    bool loops, all_non_ascii;
    uint64_t ascii[2];
    uint32_t room;
    int32_t mask; /* index in `local`; -1: not computed */
};
enum { XM_SET_DEAD = 0 };
#define XM_SET_UNKNOWN UINT32_MAX

/* A node of the trie at which a set's rule may be left, with the set reached there. */
struct xm_exit {
    uint32_t node, set;
};

/* The tokens that a set allows if they end within its rule, and the exits, where longer tokens
 * leave the rule. */
struct xm_local_mask {
    uint32_t set;
    uint64_t used; /* `clock` at the last use; the oldest is replaced */
    uint64_t *words;
    struct xm_exit *exits;
    size_t n_exits, exits_capacity;
};

/* A set of threads and the stack that they share. */
struct xm_way {
    uint32_t set, stack;
};

struct xm_ways {
    struct xm_way *list; /* owned */
    size_t n, capacity;
};

/* A memo: the ways that continue when the rule of `from` is left: n of them from `first` in
 * `continued`. */
struct xm_expansion {
    struct xm_way from;
    uint32_t first, n;
};

/* A kept mask: the tokens that a whole state allows. `key`: the ways of that state. */
struct xm_mask {
    uint64_t hash, used;
    struct xm_ways key;
    uint64_t *words; /* NULL: the entry is unused */
};

struct xm_constraint {
    const struct xm_grammar *g;
    const struct xm_tokenizer *tokenizer;
    const struct xm_token_trie *trie, *first_trie;
    int32_t *token_ids; /* [g->n_tokens] ids of the tokens that the grammar names */
    bool is_at_start;
    struct xm_threads live; /* the threads of the text; each reads something next */
    bool can_end;

    /* The closure in progress: the threads that can be reached without reading. */
    struct xm_threads work;
    struct xm_hash_index work_index;
    bool is_local;            /* stops at the rule's end and at calls */
    bool ended;               /* the end of the root rule was reached */
    struct xm_threads before; /* the threads before the token that is being read */

    struct xm_frame *frames;
    size_t n_frames, frames_capacity;
    size_t frames_needed; /* n_frames after unused frames were last dropped */
    struct xm_hash_index frame_index;

    struct xm_set *sets;
    size_t n_sets, sets_capacity;
    struct xm_place *members;
    size_t n_members, members_capacity;
    struct xm_hash_index set_index;
    uint8_t *is_loop; /* [state] whether it loops: 0 not known, 1 no, 2 yes */
    struct xm_local_mask local[LOCAL_MASKS_KEPT];
    struct xm_mask masks[MASKS_KEPT];
    uint64_t clock;

    /* State of one call of xm_constraint_allowed: */
    uint64_t *out;
    size_t n_words;
    struct xm_ways ways, level, continued;
    struct xm_expansion *expansions;
    size_t n_expansions, expansions_capacity;
    struct xm_hash_index expansion_index;

    enum xm_status failed; /* status of the call in progress */
    struct xm_error *err;
};

/* ---- constraint.c ---- */

/* Begins a closure. xm_closure_add adds a thread at the beginning of `state`; xm_closure_run adds
 * all threads that can be reached without reading. Afterwards c->work has the threads that read
 * something next and, with c->is_local, those at the end of the rule and at calls. */
void xm_closure_begin(struct xm_constraint *c, bool is_local);
void xm_closure_add(struct xm_constraint *c, uint32_t state, uint32_t stack);
void xm_closure_run(struct xm_constraint *c);
/* Adds the threads that follow when the rule of frame `stack` is complete. */
void xm_closure_return(struct xm_constraint *c, uint32_t stack);
/* Adds the threads that follow when the CALL state `state` is reached. */
void xm_closure_call(struct xm_constraint *c, uint32_t state, uint32_t stack);
/* Lets one thread read a byte and adds the threads that follow to the closure. */
void xm_closure_read(struct xm_constraint *c, const struct xm_thread *t, uint8_t byte);
void xm_constraint_fail(struct xm_constraint *c, enum xm_status status, const char *what);

/* ---- constraint_sets.c ---- */

/* Returns the set of the places of threads[n], ignoring their stacks. Changes threads[]. */
uint32_t xm_set_of(struct xm_constraint *c, struct xm_thread *threads, size_t n);
uint32_t xm_set_make_next(struct xm_constraint *c, uint32_t set, uint8_t byte);
void xm_sets_drop(struct xm_constraint *c);
void xm_masks_drop(struct xm_constraint *c);

static inline uint32_t
xm_set_next(struct xm_constraint *c, uint32_t set, uint8_t byte)
{
    const uint32_t *next = c->sets[set].next;
    return next && next[byte] != XM_SET_UNKNOWN ? next[byte]
                                                : xm_set_make_next(c, set, byte);
}

/* Appends the threads to `out` as ways: the threads with the same stack are one way. Sorts
 * `threads`. */
void xm_ways_of(struct xm_constraint *c, struct xm_threads *threads, struct xm_ways *out);
bool xm_ways_add(struct xm_constraint *c, struct xm_ways *ways, struct xm_way way);

#endif
