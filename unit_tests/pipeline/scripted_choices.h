/* SPDX-License-Identifier: Apache-2.0
 *
 * A SequenceModel whose device chooses tokens and runs them ahead of the host. The choice is a
 * second implementation of kernels/cl/choose_best_ref.cl and choose_take_ref.cl. Tests fail if a
 * token is run or dropped twice, or if a sequence is used while the device runs its token.
 */
#ifndef XM_UNIT_TESTS_PIPELINE_SCRIPTED_CHOICES_H
#define XM_UNIT_TESTS_PIPELINE_SCRIPTED_CHOICES_H

#include <algorithm>
#include <map>

#include "plugin/text/token_weight.h"
#include "unit_tests/pipeline/scripted_sequences.h"

/* The state that the device keeps of a text: how tokens are chosen, and how often each occurred. */
class DeviceText
{
  public:
    explicit DeviceText(const xm_device_choice &c) : how(c.how)
    {
        for (size_t i = 0; i < c.seen.n; i++) {
            const xm_token_count &t = c.seen.counts[i];
            seen[t.id] = {t.count, t.count - t.before};
        }
    }
    static bool can(const xm_device_choice &c)
    {
        return c.how.top_k == 0 && c.how.window == 0 && c.seen.n_barred == 0 &&
               (!c.how.draws || c.how.top_p >> 32);
    }
    /* Returns the id that the device chooses from a row of logits; -1 if they are NaN. */
    int32_t next(std::vector<float> row)
    {
        for (const auto &t : seen)
            if (how.adjusts)
                row[(size_t)t.first] =
                    penalised(row[(size_t)t.first], t.second.fresh, how.repetition,
                              how.inverse_repetition, how.frequency, how.presence);
        const int32_t id = std::isnan(row[0]) ? -1 : how.draws ? draw(row) : best(row);
        if (id >= 0 && how.adjusts) {
            seen[id].count++;
            seen[id].fresh++;
        }
        how.n++;
        return id;
    }

  private:
    struct Seen {
        uint32_t count = 0, fresh = 0;
    };
    static int32_t best(const std::vector<float> &row)
    {
        return (int32_t)(std::max_element(row.begin(), row.end()) - row.begin());
    }
    int32_t draw(const std::vector<float> &row) const
    {
        const float largest = row[(size_t)best(row)];
        std::vector<uint64_t> weights;
        uint64_t sum = 0;
        for (const float logit : row) {
            const float share = xm_weight_share(largest - logit, how.steps);
            const uint64_t weight = (uint64_t)(share * how.largest);
            weights.push_back(weight >= how.least ? weight : 0);
            sum += weights.back();
        }
        uint64_t left = xm_multiply_high(random_bits(how.seed, how.n), sum);
        size_t i = 0;
        for (; left >= weights[i]; i++)
            left -= weights[i];
        return (int32_t)i;
    }
    xm_token_choice how;
    std::map<int32_t, Seen> seen;
};

struct ChoosingModel : SequenceModel {
    bool chooses = true;
    /* Every n-th time the device does not run ahead; 0: it always does. */
    uint32_t not_ahead_every = 0;
    /* Tokens that the device ran ahead; those of them that the host did not take. */
    uint64_t n_ahead = 0, n_dropped = 0;

    explicit ChoosingModel(bool says_room = true) : SequenceModel(says_room)
    {
        ops.create_batch = create_choosing;
    }

  private:
    struct Row {
        xm_sequence *sequence;
        DeviceText text;
        int32_t id;
    };
    std::vector<Row> rows;   /* the texts whose tokens the device chooses */
    bool is_running = false; /* the device runs their last tokens */
    size_t reserved = 0;     /* pages that this run needs */
    bool is_whole = false;   /* no text has left since the first choice */
    /* The sequences of the last run by the host, if each of them had one token and wanted its
     * logits; else empty. */
    std::vector<xm_sequence *> each_one;
    uint32_t n_asked = 0;
    const xm_batch_ops *plain = nullptr;

    static ChoosingModel *model_of(xm_batch *b)
    {
        return static_cast<ChoosingModel *>(of(b)->model);
    }
    void end()
    {
        used -= reserved;
        reserved = 0;
        in_flight.clear();
        is_running = false;
    }
    void drop(const xm_sequence *s)
    {
        for (size_t i = rows.size(); i-- > 0;) {
            if (s && rows[i].sequence != s)
                continue;
            n_dropped += is_running;
            in_flight.erase(rows[i].sequence);
            rows.erase(rows.begin() + (long)i);
            is_whole = false;
        }
        if (rows.empty())
            end();
    }
    bool begin(xm_batch *b, const xm_device_choices *c)
    {
        bool fits = c->n == each_one.size();
        for (uint32_t i = 0; i < c->n && fits; i++)
            fits = c->list[i].sequence == each_one[i] && DeviceText::can(c->list[i]);
        for (uint32_t i = 0; i < c->n && fits; i++)
            rows.push_back({c->list[i].sequence, DeviceText(c->list[i]), 0});
        is_whole = fits;
        (void)b;
        return fits;
    }
    /* Completes the run ahead: appends its tokens to their sequences, or fails as the script
     * says. */
    xm_status commit(xm_error *err)
    {
        if (on_run)
            on_run();
        end();
        if (run_fails_in >= 0 && run_fails_in-- == 0) {
            rows.clear();
            return xm_fail(err, XM_DEVICE, "the device is gone");
        }
        for (Row &r : rows)
            append(*of(r.sequence), r.id);
        n_tokens += rows.size();
        return XM_OK;
    }
    bool run_ahead()
    {
        size_t need = 0;
        for (const Row &r : rows)
            need += pages_for(*of(r.sequence), 1);
        if (!is_whole || cancelled || need > pages - used ||
            (not_ahead_every && ++n_asked % not_ahead_every == 0))
            return false;
        used += reserved = need;
        for (const Row &r : rows)
            in_flight.insert(r.sequence);
        n_ahead += rows.size();
        return true;
    }

    static xm_status choose(xm_batch *b, xm_device_choices *c, xm_error *err)
    {
        ChoosingModel *m = model_of(b);
        const bool begins = m->rows.empty();
        if (!m->chooses || (begins && !m->begin(b, c)))
            return xm_fail(err, XM_UNSUPPORTED, "the host chooses");
        EXPECT_EQ(c->n, m->rows.size());
        m->each_one.clear();
        if (m->is_running)
            XM_TRY(m->commit(err));
        for (uint32_t i = 0; i < c->n; i++) {
            Row &r = m->rows[i];
            EXPECT_EQ(c->list[i].sequence, r.sequence);
            c->list[i].id = r.id = r.text.next(m->row(of(r.sequence)->state));
        }
        m->is_running = c->is_running = c->more && m->run_ahead();
        if (!m->is_running)
            m->rows.clear();
        return XM_OK;
    }
    static void stop(xm_batch *b, const xm_sequence *s)
    {
        model_of(b)->drop(s);
    }
    static xm_status run_plain(xm_batch *b, const xm_batch_row *list, uint32_t n,
                               xm_error *err)
    {
        ChoosingModel *m = model_of(b);
        m->drop(nullptr);
        m->each_one.clear();
        XM_TRY(m->plain->run(b, list, n, err));
        bool each = true;
        for (uint32_t i = 0; i < n; i++)
            each &= list[i].n == 1 && list[i].wanted == 1;
        for (uint32_t i = 0; i < n && each; i++)
            m->each_one.push_back(list[i].sequence);
        return XM_OK;
    }
    static xm_status create_choosing(xm_compiled *c, xm_batch **out, xm_error *err)
    {
        static xm_batch_ops with;
        XM_TRY(create_batch(c, out, err));
        ChoosingModel *m = model_of(*out);
        m->plain = (*out)->ops;
        with = *m->plain;
        with.run = run_plain;
        with.prepare = [](xm_batch *, const xm_token_choice *) {};
        with.choose = choose;
        with.stop = stop;
        (*out)->ops = &with;
        return XM_OK;
    }
};

#endif
