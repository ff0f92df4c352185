/* SPDX-License-Identifier: Apache-2.0
 *
 * Beam search over a model whose logits depend on all earlier ids. With enough beams the result
 * is compared with all possible texts, else with a simple search that keeps whole texts.
 */
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "plugin/pipeline/beam_search.h"
#include "plugin/text/constraint.h"
#include "runtime/util/clock.h"
#include "runtime/util/memory.h"
#include "unit_tests/pipeline/scripted_model.h"

namespace
{

constexpr int32_t A = 0, B = 1, C = 2, HASH = 3, X = 7;
const Ids prompt = {X, A, X};

struct Text {
    Ids ids; /* with the end token */
    double score;
};

std::vector<double>
log_probs(const std::vector<float> &row)
{
    std::vector<double> list;
    double sum = 0.0;
    for (float x : row)
        sum += std::exp((double)x);
    for (float x : row)
        list.push_back((double)x - std::log(sum));
    return list;
}

/* Returns logits in which only three letters and the end token have a probability. */
std::vector<float>
few(const Ids &state)
{
    std::vector<float> row = rambling(state);
    for (int32_t id = 0; id < VOCABULARY; id++)
        row[(size_t)id] = id <= C || id == IM_END ? 6.0f * row[(size_t)id] : -INFINITY;
    return row;
}

Ids
operator+(Ids a, const Ids &b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

bool
ends(const Ids &ids)
{
    return !ids.empty() && ids.back() == IM_END;
}

/* Appends all texts of at most `most` tokens, which end with the end token or by their length. */
void
add_all(const Script &script, size_t most, double length_penalty, const Text &text,
        std::vector<Text> *out)
{
    if (ends(text.ids) || text.ids.size() == most) {
        out->push_back(
            {text.ids, text.score / std::pow((double)text.ids.size(), length_penalty)});
        return;
    }
    const std::vector<double> row = log_probs(script(prompt + text.ids));
    for (int32_t id = 0; id < VOCABULARY; id++)
        if (std::isfinite(row[(size_t)id]))
            add_all(script, most, length_penalty,
                    {text.ids + Ids{id}, text.score + row[(size_t)id]}, out);
}

bool
is_better(const Text &a, const Text &b)
{
    return a.score > b.score;
}

struct Wish : xm_beam_wish {
    uint64_t most = 4;
    Wish() : xm_beam_wish()
    {
        beams = groups = returned = 1;
        length_penalty = 1.0f;
        stop = XM_BEAM_NEVER;
    }
};

struct NaiveGroup {
    std::vector<Text> beams = {{{}, 0.0}}, done;
    bool over = false;

    void finish(const Text &t, size_t width, double penalty)
    {
        done.push_back({t.ids, t.score / std::pow((double)t.ids.size(), penalty)});
        std::stable_sort(done.begin(), done.end(), is_better);
        done.resize(std::min(done.size(), width));
    }
};

/* Returns the log-probabilities of the tokens that may follow a beam. */
std::vector<double>
naive_row(const Script &script, const Wish &w, const Text &beam, const Ids &taken)
{
    const Ids text = prompt + beam.ids;
    std::vector<double> row = log_probs(script(text));
    for (int32_t id : taken)
        row[(size_t)id] -= (double)w.diversity;
    const size_t n = w.no_repeat_ngram;
    for (size_t i = 0; n && i + n <= text.size(); i++)
        if (std::equal(text.end() - (long)(n - 1), text.end(), text.begin() + (long)i))
            row[(size_t)text[i + n - 1]] = -INFINITY;
    return row;
}

void
naive_step(const Script &script, const Wish &w, size_t length, NaiveGroup *g, Ids *taken)
{
    const size_t width = w.beams / w.groups;
    const double best = g->beams[0].score; /* before this token */
    std::vector<Text> all, next;
    for (const Text &beam : g->beams) {
        const std::vector<double> row = naive_row(script, w, beam, *taken);
        for (int32_t id = 0; id < VOCABULARY; id++)
            if (std::isfinite(row[(size_t)id]))
                all.push_back({beam.ids + Ids{id}, beam.score + row[(size_t)id]});
    }
    std::stable_sort(all.begin(), all.end(), is_better);
    for (size_t i = 0; i < all.size() && i < 2 * width && next.size() < width; i++) {
        if (!ends(all[i].ids))
            next.push_back(all[i]);
        else if (i < width)
            g->finish(all[i], width, w.length_penalty);
    }
    for (const Text &t : next)
        taken->push_back(t.ids.back());
    g->beams = next;
    const size_t longest =
        w.stop == XM_BEAM_NEVER && w.length_penalty > 0.0f ? w.most : length - 1;
    g->over = next.empty() ||
              (g->done.size() == width &&
               (w.stop == XM_BEAM_EARLY ||
                (longest > 0 && g->done.back().score >=
                                    best / std::pow((double)longest, w.length_penalty))));
}

std::vector<Text>
naive_search(const Script &script, const Wish &w, size_t *steps)
{
    std::vector<NaiveGroup> groups(w.groups);
    std::vector<Text> all;
    for (size_t length = 1; length <= w.most; length++) {
        Ids taken;
        for (NaiveGroup &g : groups)
            if (!g.over) {
                naive_step(script, w, length, &g, &taken);
                *steps = length;
            }
    }
    for (NaiveGroup &g : groups) {
        for (const Text &t : g.over ? std::vector<Text>() : g.beams)
            g.finish(t, w.beams / w.groups, w.length_penalty);
        all.insert(all.end(), g.done.begin(), g.done.end());
    }
    std::stable_sort(all.begin(), all.end(), is_better);
    all.resize(std::min(all.size(), w.returned));
    return all;
}

class BeamSearch : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        EXPECT_EQ(xm_package_read(package.p, XM_PACKAGE_TOKENIZER, &err), XM_OK);
        EXPECT_EQ(xm_package_read(package.p, XM_PACKAGE_GENERATION, &err), XM_OK);
    }
    ~BeamSearch() override
    {
        clear();
    }
    void clear()
    {
        for (xm_generation_result &r : got)
            xm_generation_result_free(&r);
        got.clear();
        xm_generation_clock_free(&clock);
    }
    xm_status search(const Script &script, const Wish &w)
    {
        clear();
        got.resize(w.returned);
        model.script = script;
        asked.prompt.kind = XM_PROMPT_IDS;
        asked.prompt.ids = prompt.data();
        asked.prompt.n = prompt.size();
        asked.max_tokens = w.most;
        asked.clock = &clock;
        err = {};
        return xm_beam_search(&model.base, package.p, &asked, &w, got.data(), &n, &err);
    }
    Ids ids(size_t i) const
    {
        return Ids(got[i].ids.ids, got[i].ids.ids + got[i].ids.n);
    }
    std::string text(size_t i) const
    {
        return std::string(xm_strbuf_text(&got[i].text), got[i].text.n);
    }
    void expect(const std::vector<Text> &texts)
    {
        ASSERT_EQ(n, texts.size());
        for (size_t i = 0; i < n; i++) {
            const bool has_end = ends(texts[i].ids);
            EXPECT_EQ(got[i].finish, has_end ? XM_FINISH_STOP : XM_FINISH_LENGTH);
            EXPECT_EQ(has_end ? ids(i) + Ids{IM_END} : ids(i), texts[i].ids) << i;
        }
    }
    /* Compares texts and the number of steps with those of the simple search. */
    void expect_naive(const Script &script, const Wish &w)
    {
        size_t steps = 0;
        expect(naive_search(script, w, &steps));
        EXPECT_EQ(clock.tokens.n, steps);
    }

    ScriptedModel model{rambling};
    SmallPackage package;
    xm_generation asked = {};
    xm_generation_clock clock = {};
    std::vector<xm_generation_result> got;
    size_t n = 0;
    xm_error err = {};
};

TEST_F(BeamSearch, FindsTheBestOfAllTextsWhereItsBeamsAreEnough)
{
    for (const float penalty : {0.0f, 1.0f, 2.0f, -1.0f}) {
        Wish w;
        std::vector<Text> all;
        w.length_penalty = penalty;
        w.beams = 200;
        w.returned = 12;
        add_all(few, w.most, penalty, {{}, 0.0}, &all);
        ASSERT_LT(all.size(), w.beams);
        std::stable_sort(all.begin(), all.end(), is_better);
        all.resize(w.returned);
        ASSERT_EQ(search(few, w), XM_OK) << err.text;
        expect(all);
    }
}

TEST_F(BeamSearch, IsWhatItSaysItIs)
{
    for (const Script &script : {Script(few), Script(rambling)})
        for (const xm_beam_stop stop : {XM_BEAM_EARLY, XM_BEAM_HEURISTIC, XM_BEAM_NEVER})
            for (const size_t beams : {1, 2, 3, 4, 6})
                for (const float penalty : {0.0f, 1.0f, 2.5f, -1.0f}) {
                    Wish w;
                    w.beams = w.returned = beams;
                    w.length_penalty = penalty;
                    w.stop = stop;
                    w.most = 7;
                    SCOPED_TRACE(std::to_string(beams) + " beams, penalty " +
                                 std::to_string(penalty) + ", stop " +
                                 std::to_string(stop));
                    ASSERT_EQ(search(script, w), XM_OK) << err.text;
                    expect_naive(script, w);
                }
}

TEST_F(BeamSearch, HasGroupsThatKeepApart)
{
    for (const size_t groups : {2, 3, 6})
        for (const float diversity : {0.1f, 1.0f, 50.0f}) {
            Wish w;
            w.beams = w.returned = 6;
            w.groups = groups;
            w.diversity = diversity;
            w.most = 6;
            ASSERT_EQ(search(few, w), XM_OK) << err.text;
            expect_naive(few, w);
        }
}

/* A suppressed token gets probability zero after the softmax, so that the probabilities of the
 * others stay. */
TEST_F(BeamSearch, HasNoTokenThatThePackageSuppresses)
{
    Wish w;
    w.beams = w.returned = 4;
    ASSERT_EQ(search(rambling, w), XM_OK) << err.text;
    const int32_t first = ids(0)[0];
    ASSERT_TRUE(xm_token_list_add(&package.p->generation.suppressed, first));
    ASSERT_TRUE(xm_token_list_add(&package.p->generation.suppressed, 100000));
    ASSERT_EQ(search(rambling, w), XM_OK) << err.text;
    for (size_t i = 0; i < n; i++)
        for (const int32_t id : ids(i))
            EXPECT_NE(id, first) << i;
}

TEST_F(BeamSearch, RepeatsNoNgrams)
{
    const Script again = [](const Ids &) {
        std::vector<float> row = only(A);
        row[B] = 0.9f;
        return row;
    };
    for (const uint32_t ngram : {1u, 2u, 3u}) {
        Wish w;
        w.beams = w.returned = 3;
        w.no_repeat_ngram = ngram;
        w.most = 6;
        ASSERT_EQ(search(again, w), XM_OK) << err.text;
        expect_naive(again, w);
    }
}

TEST_F(BeamSearch, OfOneBeamIsGreedy)
{
    Session s(model, package.p);
    Wish w;
    w.stop = XM_BEAM_EARLY;
    for (const Script &script : {Script(few), Script(saying({A, B, C}, prompt.size()))}) {
        model.script = script;
        s.run.max_tokens = w.most = 9;
        ASSERT_EQ(s.generate(prompt), XM_OK) << s.err.text;
        ASSERT_EQ(search(script, w), XM_OK) << err.text;
        EXPECT_EQ(ids(0), s.ids());
        EXPECT_EQ(text(0), s.text());
        EXPECT_EQ(got[0].finish, s.got.finish);
    }
}

TEST_F(BeamSearch, GivesProbabilitiesOfItsTokens)
{
    Wish w;
    w.beams = w.returned = 2;
    w.groups = 2;
    w.diversity = 3.0f;
    asked.wants_log_probs = true;
    ASSERT_EQ(search(few, w), XM_OK) << err.text;
    for (size_t i = 0; i < n; i++) {
        ASSERT_EQ(got[i].log_probs.n, got[i].ids.n);
        Ids state = prompt;
        for (size_t k = 0; k < got[i].ids.n; k++) {
            const int32_t id = got[i].ids.ids[k];
            EXPECT_NEAR(got[i].log_probs.values[k], log_probs(few(state))[(size_t)id],
                        1e-4)
                << "nothing is taken from them";
            state.push_back(id);
        }
    }
}

TEST_F(BeamSearch, StopsAtStrings)
{
    const xm_slice stop = xm_slice_of("b#", 2);
    Wish w;
    w.beams = w.returned = 2;
    w.stop = XM_BEAM_EARLY;
    w.most = 9;
    asked.stops = &stop;
    asked.n_stops = 1;
    ASSERT_EQ(search(saying({A, B, HASH, C}, prompt.size()), w), XM_OK) << err.text;
    EXPECT_EQ(text(0), "a");
    EXPECT_EQ(got[0].finish, XM_FINISH_STOP);
    EXPECT_EQ(ids(0), Ids({A, B, HASH}));
    asked.keep_stop = asked.echo = true;
    ASSERT_EQ(search(saying({A, B, HASH, C}, prompt.size()), w), XM_OK) << err.text;
    EXPECT_EQ(text(0), "xaxab#");
}

/* A text ends with the token that completes a stop string, and no other text contains one. The
 * strings span tokens, and beams with a common beginning differ in the part of a string that they
 * have. */
TEST_F(BeamSearch, EachBeamHasItsOwnPlaceInStopStrings)
{
    const std::string strings[] = {"ab", "cbc", "#\xc3\xa9"};
    std::vector<xm_slice> stops;
    for (const std::string &s : strings)
        stops.push_back(xm_slice_of(s.data(), s.size()));
    const auto has_stop = [&](const std::string &t) {
        return std::any_of(std::begin(strings), std::end(strings),
                           [&](const auto &s) { return t.find(s) != std::string::npos; });
    };
    const auto decode = [&](const Ids &list) {
        xm_strbuf out = {};
        EXPECT_EQ(xm_tokenizer_decode(package.p->tokenizer, list.data(), list.size(),
                                      true, &out, &err),
                  XM_OK);
        const std::string t(xm_strbuf_text(&out), out.n);
        xm_strbuf_free(&out);
        return t;
    };
    Wish w;
    w.most = 9;
    asked.stops = stops.data();
    asked.n_stops = stops.size();
    size_t n_stopped = 0;
    for (const size_t beams : {2, 5, 12}) {
        w.beams = w.returned = beams;
        ASSERT_EQ(search(beams == 5 ? rambling : few, w), XM_OK) << err.text;
        for (size_t i = 0; i < n; i++) {
            Ids shorter = ids(i);
            const std::string whole = decode(shorter);
            const bool is_stopped = has_stop(whole);
            n_stopped += is_stopped;
            EXPECT_EQ(whole.compare(0, text(i).size(), text(i)), 0) << whole;
            EXPECT_FALSE(has_stop(text(i))) << text(i);
            if (is_stopped) {
                EXPECT_EQ(got[i].finish, XM_FINISH_STOP);
                shorter.pop_back();
            }
            EXPECT_FALSE(has_stop(decode(shorter))) << whole;
        }
    }
    EXPECT_GT(n_stopped, 0u);
}

/* The clock counts its readings: a token that is decoded to text reads it twice. */
TEST_F(BeamSearch, MakesATokenTextOnce)
{
    const xm_slice stop = xm_slice_of("b###", 4);
    Wish w;
    w.beams = w.returned = 3;
    w.most = 200;
    asked.stops = &stop;
    asked.n_stops = 1;
    xm_clock_replace([] {
        static double now;
        return now += 1.0;
    });
    ASSERT_EQ(search(rambling, w), XM_OK) << err.text;
    xm_clock_replace(nullptr);
    const double tried = 2 * w.beams * w.most, given = w.returned * (w.most + 1);
    EXPECT_LE(clock.detokenise_s, tried + given);
}

/* The search is over in the step after a good enough text ended: the best beam is compared with
 * its score of the step before. */
TEST_F(BeamSearch, LooksAtTheBeamsBeforeTheStep)
{
    Wish w;
    w.beams = w.returned = 1;
    w.stop = XM_BEAM_HEURISTIC;
    w.length_penalty = 0.0f;
    w.most = 9;
    const auto script = [](const Ids &state) {
        std::vector<float> row(VOCABULARY, -INFINITY);
        row[IM_END] = 0.0f;
        row[A] = state.size() < prompt.size() + 2 ? 1.0f : -9.0f;
        return row;
    };
    ASSERT_EQ(search(script, w), XM_OK) << err.text;
    EXPECT_EQ(ids(0), Ids({A, A}));
    EXPECT_EQ(clock.tokens.n, 4u) << "two, the end, and one behind it";
    w.stop = XM_BEAM_EARLY;
    ASSERT_EQ(search(script, w), XM_OK) << err.text;
    EXPECT_EQ(clock.tokens.n, 3u);
}

/* Appends all texts of at most `most` tokens that match the grammar or begin a match. */
void
add_matching(const xm_grammar *g, const Ids &state, double score, size_t most,
             std::vector<Text> *out)
{
    static const char letters[] = {'a', 'b', 'c', '#'};
    const Ids ids(state.begin() + (long)prompt.size(), state.end());
    std::string text;
    bool matches = false, goes_on = false;
    for (int32_t id : ids)
        text += letters[id];
    xm_grammar_matches(g, text.data(), text.size(), &matches, nullptr);
    for (char c : letters)
        goes_on |= xm_grammar_may_begin(g, (text + c).data(), text.size() + 1);
    if (!ids.empty() && (ids.size() == most || (matches && !goes_on))) {
        out->push_back({ids, score / (double)ids.size()});
        return;
    }
    const std::vector<double> row = log_probs(rambling(state));
    for (int32_t id = 0; id < 4; id++)
        if (xm_grammar_may_begin(g, (text + letters[id]).data(), text.size() + 1))
            add_matching(g, state + Ids{id}, score + row[(size_t)id], most, out);
    if (matches)
        out->push_back(
            {ids + Ids{IM_END}, (score + row[IM_END]) / (double)(ids.size() + 1)});
}

TEST_F(BeamSearch, FindsTheBestOfAllTextsThatMatchAGrammar)
{
    for (const char *notation :
         {"root ::= [ab]+ \"#\"", "root ::= pair+\npair ::= \"a\" [bc] | \"c\" pair",
          "root ::= \"ab\" | \"abc\" | \"b\"", "root ::= [abc]{0,3}"}) {
        SCOPED_TRACE(notation);
        xm_grammar *g = nullptr;
        ASSERT_EQ(xm_grammar_parse(notation, strlen(notation), &g, &err), XM_OK)
            << err.text;
        std::vector<Text> all;
        Wish w;
        w.beams = w.returned = 200;
        w.most = 5;
        asked.grammar = g;
        add_matching(g, prompt, 0.0, w.most, &all);
        std::stable_sort(all.begin(), all.end(), is_better);
        EXPECT_EQ(search(rambling, w), XM_OK) << err.text;
        ASSERT_EQ(n, all.size());
        for (size_t i = 0; i < n; i++) {
            const bool has_end = ends(all[i].ids);
            EXPECT_EQ(has_end ? ids(i) + Ids{IM_END} : ids(i), all[i].ids) << i;
        }
        xm_grammar_free(g);
    }
}

/* Few beams split and end all the time: each copy of a beam has a grammar state of its own. */
TEST_F(BeamSearch, EachBeamHasItsOwnPlaceInTheGrammar)
{
    const std::string notation = "root ::= item+\nitem ::= \"(\"? nest [bc]\n"
                                 "nest ::= \"a\" nest \"#\" | [bc]";
    xm_grammar *g = nullptr;
    ASSERT_EQ(xm_grammar_parse(notation.data(), notation.size(), &g, &err), XM_OK);
    asked.grammar = g;
    Wish w;
    w.most = 24;
    for (const size_t beams : {2, 3, 7}) {
        w.beams = w.returned = beams;
        ASSERT_EQ(search(rambling, w), XM_OK) << err.text;
        ASSERT_EQ(n, beams);
        for (size_t i = 0; i < n; i++) {
            bool matches = false;
            xm_grammar_matches(g, text(i).data(), text(i).size(), &matches, &err);
            EXPECT_TRUE(got[i].finish == XM_FINISH_STOP
                            ? matches
                            : xm_grammar_may_begin(g, text(i).data(), text(i).size()))
                << text(i);
        }
    }
    xm_grammar_free(g);
}

/* No token may follow "a", so that only "bc" is a text. */
TEST_F(BeamSearch, LosesBeamsThatTheGrammarLeavesNothing)
{
    const std::string way = "root ::= \"az\" | \"bc\"", none = "root ::= \"az\"";
    xm_grammar *g = nullptr;
    Wish w;
    w.beams = w.returned = 3;
    ASSERT_EQ(xm_grammar_parse(way.data(), way.size(), &g, &err), XM_OK);
    asked.grammar = g;
    ASSERT_EQ(search(saying({A, B}, prompt.size()), w), XM_OK) << err.text;
    ASSERT_EQ(n, 1u);
    EXPECT_EQ(ids(0), Ids({B, C}));
    EXPECT_EQ(got[0].finish, XM_FINISH_STOP);
    xm_grammar_free(g);
    ASSERT_EQ(xm_grammar_parse(none.data(), none.size(), &g, &err), XM_OK);
    asked.grammar = g;
    EXPECT_EQ(search(few, w), XM_INVALID);
    EXPECT_NE(std::string(err.text).find("not allowed by the grammar"),
              std::string::npos);
    xm_grammar_free(g);
}

/* A stop string ends a text even where the grammar allows more. */
TEST_F(BeamSearch, StopsAtStringsWithinAGrammar)
{
    const std::string notation = "root ::= [ab]+ \"#\"";
    const xm_slice stop = xm_slice_of("ab", 2);
    xm_grammar *g = nullptr;
    ASSERT_EQ(xm_grammar_parse(notation.data(), notation.size(), &g, &err), XM_OK);
    asked.grammar = g;
    asked.stops = &stop;
    asked.n_stops = 1;
    Wish w;
    w.beams = w.returned = 6;
    w.most = 6;
    ASSERT_EQ(search(rambling, w), XM_OK) << err.text;
    size_t n_stopped = 0;
    for (size_t i = 0; i < n; i++) {
        n_stopped += got[i].stop == 1;
        EXPECT_EQ(text(i).find("ab"), std::string::npos) << text(i);
        EXPECT_EQ(got[i].stop == 1,
                  got[i].finish == XM_FINISH_STOP && ids(i).back() != HASH);
    }
    EXPECT_GT(n_stopped, 0u);
    xm_grammar_free(g);
}

TEST_F(BeamSearch, GivesTheLikeliestTokensBesideEach)
{
    Wish w;
    w.beams = w.returned = 3;
    asked.n_likeliest = 2;
    ASSERT_EQ(search(few, w), XM_OK) << err.text;
    for (size_t i = 0; i < n; i++) {
        ASSERT_EQ(got[i].likeliest.n, 2 * got[i].ids.n);
        Ids state = prompt;
        for (size_t k = 0; k < got[i].ids.n; state.push_back(got[i].ids.ids[k++])) {
            const std::vector<double> row = log_probs(few(state));
            const auto best = std::max_element(row.begin(), row.end());
            EXPECT_EQ(got[i].likeliest.values[2 * k].id, best - row.begin());
            EXPECT_NEAR(got[i].likeliest.values[2 * k].log_prob, *best, 1e-4);
        }
    }
}

TEST_F(BeamSearch, KeepsTheEndThatIsText)
{
    const Ids end = {HASH};
    Wish w;
    w.beams = w.returned = 2;
    w.stop = XM_BEAM_EARLY;
    w.most = 9;
    asked.ends = end.data();
    asked.n_ends = end.size();
    asked.has_ends = true;
    ASSERT_EQ(search(saying({A, B, HASH, C}, prompt.size()), w), XM_OK) << err.text;
    EXPECT_EQ(text(0), "ab");
    asked.keep_end = true;
    ASSERT_EQ(search(saying({A, B, HASH, C}, prompt.size()), w), XM_OK) << err.text;
    EXPECT_EQ(text(0), "ab#");
    EXPECT_EQ(ids(0), Ids({A, B})) << "none of the ids";
}

TEST_F(BeamSearch, EndsNoTextBeforeTheLeastLength)
{
    Wish w;
    w.beams = w.returned = 3;
    w.most = 8;
    asked.min_tokens = 5;
    ASSERT_EQ(search(few, w), XM_OK) << err.text;
    for (size_t i = 0; i < n; i++)
        EXPECT_GE(got[i].ids.n, 5u);
}

/* A model that cannot truncate its state computes each branch from the start. */
TEST_F(BeamSearch, NeedsNoWayBack)
{
    Wish w;
    w.beams = w.returned = 4;
    ASSERT_EQ(search(few, w), XM_OK) << err.text;
    const Ids best = ids(0);
    const int runs = model.runs;
    model.can_truncate = false;
    model.runs = 0;
    ASSERT_EQ(search(few, w), XM_OK) << err.text;
    EXPECT_EQ(ids(0), best);
    EXPECT_EQ(model.runs, runs);
}

TEST_F(BeamSearch, SaysWhatItCannotDo)
{
    Wish w;
    w.most = 0;
    EXPECT_EQ(search(few, w), XM_INVALID);
    EXPECT_NE(std::string(err.text).find("new tokens"), std::string::npos) << err.text;
    w.most = 3;
    asked.context = prompt.size();
    EXPECT_EQ(search(few, w), XM_INVALID);
    asked.context = prompt.size() + 2;
    EXPECT_EQ(search(rambling, w), XM_OK) << err.text;
    EXPECT_EQ(got[0].finish, XM_FINISH_CONTEXT);
    model.runs = 0;
    model.fails_at = 2;
    asked.context = 0;
    EXPECT_EQ(search(rambling, w), XM_DEVICE);
    EXPECT_EQ(std::string(err.text), "the device is gone");
    EXPECT_EQ(n, 0u);
}

TEST_F(BeamSearch, SaysWhereLogitsAreNoNumbers)
{
    Wish w;
    const auto broken = [](const Ids &state) {
        return std::vector<float>(VOCABULARY, state.size() > 4 ? NAN : 0.0f);
    };
    EXPECT_EQ(search(broken, w), XM_NOT_FINITE);
    EXPECT_NE(std::string(err.text).find("position 4 are not finite"), std::string::npos)
        << err.text;
}

/* In a dry run logits are never computed and may be NaN. This runs in another process, because
 * whether a run is dry is read only once. */
TEST_F(BeamSearch, TakesNothingFromLogitsOfADryRun)
{
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    Wish w;
    w.beams = w.returned = 4;
    w.groups = 2;
    asked.wants_log_probs = true;
    const auto nothing = [](const Ids &) { return std::vector<float>(VOCABULARY, NAN); };
    EXPECT_EXIT(
        {
            setenv("XM_DRY_RUN", "1", 1);
            const bool ok = search(nothing, w) == XM_OK && n == 4 && ids(0).size() == 4 &&
                            got[3].log_probs.values[3] == 0.0f;
            fprintf(stderr, "%s\n", err.text);
            exit(!ok);
        },
        testing::ExitedWithCode(0), "");
}

TEST_F(BeamSearch, SurvivesWithoutMemory)
{
    const xm_slice stop = xm_slice_of("b#", 2);
    const std::string notation = "root ::= [abc]+ \"##\"?";
    xm_grammar *g = nullptr;
    ASSERT_EQ(xm_grammar_parse(notation.data(), notation.size(), &g, &err), XM_OK);
    Wish w;
    w.beams = w.returned = 2;
    w.no_repeat_ngram = 3;
    asked.stops = &stop;
    asked.n_stops = 1;
    asked.wants_log_probs = true;
    asked.n_likeliest = 1;
    asked.grammar = g;
    /* builds the vocabulary's trie, which is kept */
    ASSERT_EQ(search(few, w), XM_OK) << err.text;
    const Ids best = ids(0);
    for (uint64_t i = 1;; i++) {
        clear();
        got.resize(2);
        xm_fail_allocation(i);
        const xm_status s = search(few, w);
        const bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        for (size_t k = n; k < got.size(); k++)
            EXPECT_TRUE(got[k].ids.ids == nullptr && got[k].text.text == nullptr)
                << i << ": only the first n are the caller's to free";
        if (!seen) {
            EXPECT_EQ(s, XM_OK) << err.text;
            break;
        }
        /* A mask that cannot be stored is computed again. */
        ASSERT_TRUE(s == XM_NO_MEMORY || (s == XM_OK && ids(0) == best))
            << i << ": " << err.text;
    }
    xm_grammar_free(g);
}

} // namespace
