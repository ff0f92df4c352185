/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside constraints, for constraint*.c only.
 *
 *     constraint.c          the text's exact state: threads, stacks, reading bytes
 *     constraint_sets.c     sets of threads of one stack, as states of a deterministic automaton
 *     constraint_allowed.c  walks the trie with these
 */
#ifndef XM_PLUGIN_TEXT_CONSTRAINT_PARTS_H
#define XM_PLUGIN_TEXT_CONSTRAINT_PARTS_H

#include "plugin/text/constraint.h"
#include "plugin/text/grammar_parts.h"
#include "plugin/text/token_trie.h"

enum {
    MOST_THREADS = 1 << 15, /* of a text, and of a set                            */
    MOST_FRAMES = 1 << 19,  /* open rules of all threads                          */
    FRAMES_KEPT = 1 << 15,  /* above, those that no thread needs are dropped      */
    MOST_SETS = 1 << 14,    /* within one call                                    */
    SETS_KEPT = 1 << 12,    /* above, all are dropped before a call               */
    MOST_MEMBERS = 1 << 21, /* threads of all sets                                */
    MEMBERS_KEPT = 1 << 18, /* above, all sets are dropped before a call          */
    MASKS_KEPT = 32,        /* of sets of threads                                 */
    LOCAL_MASKS_KEPT = 64,  /* of single sets                                     */
    MOST_WAYS = 1 << 12     /* of reading one token                               */
};

/* Where a thread is. `sub`: of a text, the bytes read; of units, 0: between two, else the node
 * within one, plus 1. `count`: complete units. */
struct xm_place {
    uint32_t state, count, sub;
};

#define XM_NO_FRAME UINT32_MAX

struct xm_thread {
    struct xm_place at;
    uint32_t stack; /* frame; XM_NO_FRAME: none, the root's end is the text's */
};

/* A rule that is open: it returns to `call`, a state, when `count` matches are complete. */
struct xm_frame {
    uint32_t call, count, parent;
};

struct xm_threads {
    struct xm_thread *list; /* owned */
    size_t n, capacity;
};

/* The threads of one rule, whichever stack they have. */
struct xm_set {
    uint32_t first, n; /* places in `members`, in order */
    uint32_t *next;    /* owned; [256]; NULL: none is known yet */
    bool leaves;       /* a place is the rule's end, or a call */
    /* Characters that lead back into it: any number of these, or at most `room`. */
    bool loops, all_non_ascii;
    uint64_t ascii[2];
    uint32_t room;
    int32_t mask; /* local mask; -1: not known */
};
enum { XM_SET_DEAD = 0 };
#define XM_SET_UNKNOWN UINT32_MAX

/* A set at a node of the trie where its rule may be left. */
struct xm_exit {
    uint32_t node, set;
};

/* The tokens that one set allows within its rule, and where they leave it. */
struct xm_local_mask {
    uint32_t set;
    uint64_t used; /* when, for the oldest to be dropped */
    uint64_t *words;
    struct xm_exit *exits;
    size_t n_exits, exits_capacity;
};

/* A set and the stack of its threads. */
struct xm_way {
    uint32_t set, stack;
};

struct xm_ways {
    struct xm_way *list; /* owned */
    size_t n, capacity;
};

/* The ways that continue where a rule is left, from `first` on in `continued`. */
struct xm_expansion {
    struct xm_way from;
    uint32_t first, n;
};

struct xm_mask {
    uint64_t hash, used;
    struct xm_ways key;
    uint64_t *words; /* NULL: free */
};

struct xm_constraint {
    const struct xm_grammar *g;
    const struct xm_tokenizer *tokenizer;
    const struct xm_token_trie *trie, *first_trie;
    int32_t *token_ids; /* of the grammar's tokens */
    bool is_at_start;
    struct xm_threads live; /* all read something next */
    bool can_end;

    /* Closures: what can be reached without reading. */
    struct xm_threads work;
    struct xm_hash_index work_index;
    bool is_local;            /* stays in the rule */
    bool ended;               /* the root's end was reached */
    struct xm_threads before; /* of a step */

    struct xm_frame *frames;
    size_t n_frames, frames_capacity;
    size_t frames_needed; /* when they were last dropped */
    struct xm_hash_index frame_index;

    struct xm_set *sets;
    size_t n_sets, sets_capacity;
    struct xm_place *members;
    size_t n_members, members_capacity;
    struct xm_hash_index set_index;
    uint8_t *is_loop; /* of states: 0 not known, 1 no, 2 yes */
    struct xm_local_mask local[LOCAL_MASKS_KEPT];
    struct xm_mask masks[MASKS_KEPT];
    uint64_t clock;

    /* Of one call of xm_constraint_allowed. */
    uint64_t *out;
    size_t n_words;
    struct xm_ways ways, level, continued;
    struct xm_expansion *expansions;
    size_t n_expansions, expansions_capacity;
    struct xm_hash_index expansion_index;

    enum xm_status failed; /* of the call in progress */
    struct xm_error *err;
};

/* ---- constraint.c ---- */

/* Begins a closure; xm_closure_add puts in a thread at the beginning of `state`, xm_closure_run
 * adds what can be reached. Of c->work then remain the threads that read something, and with
 * c->is_local those at the end of the rule and at calls. */
void xm_closure_begin(struct xm_constraint *c, bool is_local);
void xm_closure_add(struct xm_constraint *c, uint32_t state, uint32_t stack);
void xm_closure_run(struct xm_constraint *c);
/* Adds what follows when the rule of `stack` is complete. */
void xm_closure_return(struct xm_constraint *c, uint32_t stack);
/* Adds what follows when `state`, a call, is reached. */
void xm_closure_call(struct xm_constraint *c, uint32_t state, uint32_t stack);
/* Reads a byte from one thread; what follows goes into the closure. */
void xm_closure_read(struct xm_constraint *c, const struct xm_thread *t, uint8_t byte);
void xm_constraint_fail(struct xm_constraint *c, enum xm_status status, const char *what);

/* ---- constraint_sets.c ---- */

/* The set of the places of threads[n], whose stacks do not matter. */
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

/* The threads as ways, in order: those of one stack are one. They are sorted. */
void xm_ways_of(struct xm_constraint *c, struct xm_threads *threads, struct xm_ways *out);
bool xm_ways_add(struct xm_constraint *c, struct xm_ways *ways, struct xm_way way);

#endif
