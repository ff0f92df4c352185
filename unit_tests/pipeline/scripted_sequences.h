/* SPDX-License-Identifier: Apache-2.0
 *
 * A language model for tests with sequences, batches and a cache of pages that may become full.
 * Its logits are a hash of the tokens of the sequence, so that a token that was run twice, or not
 * at all, changes the text. A full page is found by the hash of all tokens up to its end; it
 * stays in the cache while no sequence uses it, until other tokens need the page.
 */
#ifndef XM_UNIT_TESTS_PIPELINE_SCRIPTED_SEQUENCES_H
#define XM_UNIT_TESTS_PIPELINE_SCRIPTED_SEQUENCES_H

#include <cmath>
#include <cstring>
#include <deque>
#include <set>
#include <unordered_map>

#include "unit_tests/pipeline/scripted_model.h"

struct SequenceModel {
    xm_compiled base; /* must be the first member */
    xm_compiled_ops ops = {};
    /* What tests set: number and size of the pages, chunk of a run, and failures. */
    size_t pages = SIZE_MAX, page = 4;
    uint64_t chunk = 16;
    uint64_t vocabulary = VOCABULARY;
    /* One of so many states has NaN as logits; 0: none. */
    uint32_t nan_every = 0;
    /* The number of runs before the one that fails; -1: none fails. */
    int run_fails_in = -1;
    bool fork_fails = false;
    bool can_save = true, save_fails = false, load_fails = false;
    /* The model's identity, which a saved sequence must match. */
    std::string name = "model of a test";
    std::function<void()> on_run;
    /* What the model counts for tests. */
    std::vector<Ids> runs; /* tokens of each row, per run; if keeps_runs */
    bool keeps_runs = true;
    size_t bytes_of_position = 4; /* bytes of a position in a saved sequence */
    /* A saved sequence holds only the last `window` positions. It serves no beginning that ends
     * before them. */
    uint64_t window = UINT64_MAX;
    uint64_t n_loads = 0;
    uint64_t n_tokens = 0, n_forks = 0, n_full = 0; /* n_full: runs refused, cache full */
    size_t used = 0, n_sequences = 0, n_batches = 0;
    std::atomic<bool> cancelled{false};
    /* Sequences that must not be used, because a token of theirs runs (scripted_choices.h). */
    std::set<const xm_sequence *> in_flight;

    explicit SequenceModel(bool says_room = true) : base()
    {
        ops.create_sequence = create_sequence;
        ops.create_batch = create_batch;
        ops.has_room = says_room ? has_room : nullptr;
        ops.destroy = [](xm_compiled *) {};
        base.ops = &ops;
        base.refs = 1;
    }
    ~SequenceModel()
    {
        EXPECT_EQ(used, 0u);
        EXPECT_EQ(n_sequences, 0u);
        EXPECT_EQ(n_batches, 0u);
        EXPECT_EQ(base.refs, 1);
    }
    SequenceModel(const SequenceModel &) = delete;

    /* Returns the logits that follow a state, which is the hash of all tokens. */
    std::vector<float> row(uint32_t state) const
    {
        if (nan_every && state % nan_every == 0)
            return std::vector<float>(vocabulary, NAN);
        std::vector<float> logits = ramble_from(state);
        for (uint32_t id = VOCABULARY; id < vocabulary; id++)
            logits.push_back((float)(digest((int32_t)id, state) % 1024) / 256.0f);
        return logits;
    }

  protected:
    struct Page {
        size_t users;
        uint32_t key; /* hash of the tokens up to its end; 0: not full */
    };
    struct Sequence {
        xm_sequence base; /* must be the first member */
        SequenceModel *model;
        Ids ids;
        uint32_t state = 1;
        std::vector<size_t> pages;
    };
    struct Batch {
        xm_batch base; /* must be the first member */
        xm_infer control;
        SequenceModel *model;
        std::vector<std::vector<float>> logits;
    };
    std::vector<Page> all;
    std::vector<size_t> unused; /* free pages without a key */
    std::deque<size_t> cached;  /* free pages with a key, longest free first */
    std::unordered_map<uint32_t, size_t> by_key; /* pages with a key, free or used */

    static SequenceModel *of(xm_compiled *c)
    {
        return reinterpret_cast<SequenceModel *>(c);
    }
    static Sequence *of(xm_sequence *s)
    {
        return reinterpret_cast<Sequence *>(s);
    }
    static const Sequence *of(const xm_sequence *s)
    {
        return reinterpret_cast<const Sequence *>(s);
    }
    static Batch *of(xm_batch *b)
    {
        return reinterpret_cast<Batch *>(b);
    }

    /* ---- pages ---- */

    void share(size_t p)
    {
        used += all[p].users++ == 0;
    }
    void release(size_t p)
    {
        if (--all[p].users > 0)
            return;
        used--;
        if (all[p].key)
            cached.push_back(p);
        else
            unused.push_back(p);
    }
    /* Returns a free page; the caller checked that there is one. Takes pages without a key first,
     * then the page that is free for longest. */
    size_t take()
    {
        size_t p;
        if (unused.empty() && all.size() < pages) {
            unused.push_back(all.size());
            all.push_back({0, 0});
        }
        if (!unused.empty()) {
            p = unused.back();
            unused.pop_back();
        } else {
            while (all[cached.front()].users > 0 || !all[cached.front()].key)
                cached.pop_front(); /* pages that were used again */
            p = cached.front();
            cached.pop_front();
            by_key.erase(all[p].key);
            all[p].key = 0;
        }
        share(p);
        return p;
    }
    bool is_shared_end(const Sequence &s) const
    {
        return s.ids.size() % page != 0 && all[s.pages.back()].users > 1;
    }
    size_t pages_for(const Sequence &s, uint64_t n) const
    {
        return (s.ids.size() + n + page - 1) / page - s.pages.size() + is_shared_end(s);
    }
    void append(Sequence &s, int32_t id)
    {
        if (is_shared_end(s)) {
            release(s.pages.back());
            s.pages.back() = take();
        }
        if (s.ids.size() % page == 0)
            s.pages.push_back(take());
        s.ids.push_back(id);
        s.state = digest(id, s.state);
        if (s.ids.size() % page == 0 && by_key.insert({s.state, s.pages.back()}).second)
            all[s.pages.back()].key = s.state;
    }

    /* ---- sequences ---- */

    static xm_status create_sequence(xm_compiled *c, xm_sequence **out, xm_error *)
    {
        static const xm_sequence_file_ops file_ops = {identify, page_of, bytes,
                                                      least,    save,    load};
        static const xm_sequence_ops without = {fork,  past,    truncate,
                                                match, destroy, nullptr};
        static const xm_sequence_ops with = {fork,  past,    truncate,
                                             match, destroy, &file_ops};
        Sequence *s = new Sequence();
        s->base.ops = of(c)->can_save ? &with : &without;
        s->model = of(c);
        s->model->n_sequences++;
        *out = &s->base;
        return XM_OK;
    }
    static xm_status fork(xm_sequence *from, xm_sequence **out, xm_error *err)
    {
        SequenceModel *m = of(from)->model;
        expect_idle(from);
        if (m->fork_fails)
            return xm_fail(err, XM_NO_MEMORY, "no forks");
        Sequence *s = new Sequence(*of(from));
        for (size_t p : s->pages)
            m->share(p);
        m->n_sequences++;
        m->n_forks++;
        *out = &s->base;
        return XM_OK;
    }
    static void expect_idle(const xm_sequence *s)
    {
        EXPECT_EQ(of(s)->model->in_flight.count(s), 0u) << "its token runs";
    }
    static uint64_t past(const xm_sequence *s)
    {
        return of(s)->ids.size();
    }
    static xm_status match(xm_sequence *sequence, const int32_t *ids, uint64_t n,
                           xm_error *)
    {
        Sequence *s = of(sequence);
        SequenceModel *m = s->model;
        uint32_t state = s->state;
        for (uint64_t i = 0; i + 1 < n; i++) {
            state = digest(ids[i], state);
            if ((i + 1) % m->page != 0)
                continue;
            const auto found = m->by_key.find(state);
            if (found == m->by_key.end())
                break;
            m->share(found->second);
            s->pages.push_back(found->second);
            s->ids.assign(ids, ids + i + 1);
            s->state = state;
        }
        return XM_OK;
    }
    static void truncate(xm_sequence *sequence, uint64_t past)
    {
        Sequence *s = of(sequence);
        expect_idle(sequence);
        while (s->pages.size() > (past + s->model->page - 1) / s->model->page) {
            s->model->release(s->pages.back());
            s->pages.pop_back();
        }
        s->ids.resize(past);
        s->state = 1;
        for (int32_t id : s->ids)
            s->state = digest(id, s->state);
    }

    /* ---- saved sequences: the bytes are the tokens ---- */

    static xm_status identify(const xm_sequence *s, xm_strbuf *out, xm_error *)
    {
        xm_strbuf_add(out, of(s)->model->name.c_str());
        return XM_OK;
    }
    static uint64_t page_of(const xm_sequence *s)
    {
        return of(s)->model->page;
    }
    static uint64_t bytes(const xm_sequence *s)
    {
        const size_t n = of(s)->ids.size();
        return (n - n % of(s)->model->page) * of(s)->model->bytes_of_position;
    }
    uint64_t least_of(uint64_t positions) const
    {
        return positions > window ? positions - window : 0;
    }
    static uint64_t least(const xm_sequence *s)
    {
        const SequenceModel *m = of(s)->model;
        return m->least_of(bytes(s) / m->bytes_of_position);
    }
    static xm_status save(const xm_sequence *s, const xm_export *to, xm_error *err)
    {
        const SequenceModel *m = of(s)->model;
        std::string piece(m->bytes_of_position, 'x');
        expect_idle(s);
        if (m->save_fails)
            return xm_fail(err, XM_DEVICE, "the device is gone");
        for (uint64_t i = 0; i < bytes(s) / piece.size(); i++) {
            memcpy(&piece[0], &of(s)->ids[i], sizeof(int32_t));
            XM_TRY(to->write(to->ctx, piece.data(), piece.size(), err));
        }
        return XM_OK;
    }
    static xm_status load(xm_sequence *s, const int32_t *ids, uint64_t n,
                          const uint8_t *from, uint64_t n_bytes, xm_error *err)
    {
        SequenceModel *m = of(s)->model;
        EXPECT_EQ(of(s)->ids.size(), 0u);
        EXPECT_EQ(n % m->page, 0u);
        EXPECT_LE(n * m->bytes_of_position, n_bytes);
        m->n_loads++;
        if (m->load_fails || m->pages_for(*of(s), n) > m->pages - m->used)
            return xm_fail(err, XM_NO_MEMORY, "the cache is full");
        if (n < m->least_of(n_bytes / m->bytes_of_position))
            return XM_OK;
        for (uint64_t i = 0; i < n; i++) {
            int32_t id;
            memcpy(&id, from + i * m->bytes_of_position, sizeof(id));
            EXPECT_EQ(id, ids[i]);
            m->append(*of(s), id);
        }
        return XM_OK;
    }
    static void destroy(xm_sequence *sequence)
    {
        Sequence *s = of(sequence);
        expect_idle(sequence);
        /* last page first: a beginning stays cached longest */
        for (size_t i = s->pages.size(); i-- > 0;)
            s->model->release(s->pages[i]);
        s->model->n_sequences--;
        delete s;
    }
    static bool has_room(xm_compiled *c, const uint64_t *positions, size_t n)
    {
        const SequenceModel *m = of(c);
        size_t need = 0;
        for (size_t i = 0; i < n; i++)
            need += (positions[i] + m->page - 1) / m->page;
        return need <= m->pages - m->used;
    }

    /* ---- batches ---- */

    static xm_status run(xm_batch *b, const xm_batch_row *rows, uint32_t n, xm_error *err)
    {
        SequenceModel *m = of(b)->model;
        std::set<const xm_sequence *> seen;
        Ids sizes;
        size_t need = 0;
        if (m->on_run)
            m->on_run();
        if (m->cancelled)
            return xm_fail(err, XM_CANCELLED, "the run was cancelled");
        if (m->run_fails_in >= 0 && m->run_fails_in-- == 0)
            return xm_fail(err, XM_DEVICE, "the device is gone");
        for (uint32_t i = 0; i < n; i++) {
            EXPECT_TRUE(seen.insert(rows[i].sequence).second) << "twice in a run";
            EXPECT_GT(rows[i].n, 0u);
            need += m->pages_for(*of(rows[i].sequence), rows[i].n);
            sizes.push_back((int32_t)rows[i].n);
        }
        m->n_full += need > m->pages - m->used;
        if (need > m->pages - m->used)
            return xm_fail(err, XM_NO_MEMORY, "the cache is full");
        of(b)->logits.assign(n, {});
        for (uint32_t i = 0; i < n; i++) {
            Sequence *s = of(rows[i].sequence);
            for (uint64_t k = 0; k < rows[i].n; k++)
                m->append(*s, rows[i].ids[k]);
            m->n_tokens += rows[i].n;
            if (rows[i].wanted)
                of(b)->logits[i] = m->row(s->state);
        }
        if (m->keeps_runs)
            m->runs.push_back(sizes);
        return XM_OK;
    }
    static const float *logits(const xm_batch *b, uint32_t i, uint64_t *rows,
                               uint64_t *vocabulary)
    {
        const Batch *batch = reinterpret_cast<const Batch *>(b);
        *rows = batch->logits[i].empty() ? 0 : 1;
        *vocabulary = batch->model->vocabulary;
        return *rows ? batch->logits[i].data() : nullptr;
    }
    static xm_status create_batch(xm_compiled *c, xm_batch **out, xm_error *)
    {
        static const xm_batch_ops batch_ops = [] {
            xm_batch_ops o = {};
            o.run = run;
            o.logits = logits;
            o.destroy = [](xm_batch *b) {
                of(b)->model->n_batches--;
                delete of(b);
            };
            return o;
        }();
        static const xm_infer_ops control_ops = [] {
            xm_infer_ops o = {};
            o.cancel = [](xm_infer *r) { of(r->compiled)->cancelled = true; };
            o.resume = [](xm_infer *r) { of(r->compiled)->cancelled = false; };
            return o;
        }();
        Batch *b = new Batch();
        b->base.ops = &batch_ops;
        b->base.control = &b->control;
        b->base.chunk = of(c)->chunk;
        b->base.page = of(c)->page;
        b->control.ops = &control_ops;
        b->model = of(c);
        b->model->n_batches++;
        *out = &b->base;
        return XM_OK;
    }
};

#endif
