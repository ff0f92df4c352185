/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles of 16 tokens in pairs of halves, as matrix engines take them, for the weights that read
 * them: `planes` is theirs (planes.h), `group` their group.
 *
 * Weights come by chunks: CHUNK_WORDS words of a row, of one group. A word has WORD_K
 * neighbouring k; one mask leaves two of them, WORD_K / 2 apart, which are a pair. Step j of a
 * chunk multiplies 8 pairs; pair c is from word c % CHUNK_WORDS:
 *
 *     k = word's first k + j + c / CHUNK_WORDS * STEPS,  and that + WORD_K / 2
 *
 * A tile is words of two halves: [chunk][step][token block][pair][`lanes` tokens]. K is whole
 * chunks.
 */
#define PAIR_WORD_K(planes) ((planes) == 1 ? 2 : (planes)) /* floats are halves here */
#define PAIR_CHUNK_WORDS(planes, group)                                                  \
    ((group) && (group) < 8 * PAIR_WORD_K(planes) ? (group) / PAIR_WORD_K(planes) : 8)
#define PAIR_CHUNK_K(planes, group)                                                      \
    (PAIR_CHUNK_WORDS(planes, group) * PAIR_WORD_K(planes))
#define PAIR_STEPS(planes, group) (PAIR_CHUNK_K(planes, group) / 16)

/* The first k of pair c of a step, counted from the first chunk. */
static inline uint
pair_k(uint step, uint c, uint planes, uint group)
{
    const uint words = PAIR_CHUNK_WORDS(planes, group), steps = PAIR_STEPS(planes, group);
    return (step / steps * words + c % words) * PAIR_WORD_K(planes) + c / words * steps +
           step % steps;
}

/* Its word for a token, in words from the begin of a tile. */
static inline uint
pair_word(uint step, uint c, uint token, uint lanes)
{
    return ((step * (16 / lanes) + token / lanes) * 8 + c) * lanes + token % lanes;
}

/* The word of a token that k is in: its low half, or its high one. */
static inline uint
word_of_k(uint k, uint token, uint planes, uint group, uint lanes)
{
    const uint words = PAIR_CHUNK_WORDS(planes, group), steps = PAIR_STEPS(planes, group);
    const uint word = k / PAIR_WORD_K(planes), in_word = k % (PAIR_WORD_K(planes) / 2);
    return pair_word(word / words * steps + in_word % steps,
                     word % words + in_word / steps * words, token, lanes);
}
