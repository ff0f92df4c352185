/* SPDX-License-Identifier: Apache-2.0
 *
 * A language model for tests: a script computes its logits from all ids that its state holds, so
 * that a token that was fed twice, or not at all, changes the text. And a package with a small
 * tokenizer.
 */
#ifndef XM_UNIT_TESTS_PIPELINE_SCRIPTED_MODEL_H
#define XM_UNIT_TESTS_PIPELINE_SCRIPTED_MODEL_H

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "functional_tests/common/folder.h"
#include "plugin/pipeline/session.h"

using Ids = std::vector<int32_t>;

enum { VOCABULARY = 12, IM_END = 8, THINK = 9, END_THINK = 10, SPECIAL = 11 };
/* Tokens with ids beyond the vocabulary: no logits choose them. */
enum { TOOL_CALL = 12, END_TOOL_CALL = 13, CALL_OF_F = 14 };

/* Returns the logits of the position after these ids. */
using Script = std::function<std::vector<float>(const Ids &state)>;

struct ScriptedModel {
    xm_compiled base; /* must be the first member */
    char name[10] = "input_ids";
    char *names[1] = {name};
    xm_port input = {}, result = {};
    Script script;
    bool can_truncate = true;
    /* Whether a run gives the logits of all tokens that are fed; else of the last only. */
    bool gives_all = false;
    /* The ids in the state, those that the last run was fed, and its logits. The model has one
     * request at a time. */
    Ids state, fed;
    std::vector<float> logits;
    std::atomic<bool> cancelled{false};
    int runs = 0, fails_at = -1; /* the run with this number fails */

    explicit ScriptedModel(Script s) : base(), script(std::move(s))
    {
        static const xm_compiled_ops ops = {create_request, nullptr, nullptr, nullptr,
                                            [](xm_compiled *) {}};
        input.name = name;
        input.names = names;
        input.n_names = 1;
        input.type.element = XM_I64;
        result.type.shape.rank = 1;
        result.type.shape.dim[0] = xm_dim_const(VOCABULARY);
        base.ops = &ops;
        base.refs = 1;
        base.ports.inputs = &input;
        base.ports.n_inputs = 1;
        base.ports.outputs = &result;
        base.ports.n_outputs = 1;
    }
    ScriptedModel(const ScriptedModel &) = delete;

  private:
    struct Request {
        xm_infer base; /* must be the first member */
        ScriptedModel *model;
    };
    static ScriptedModel *of(const xm_infer *r)
    {
        return reinterpret_cast<const Request *>(r)->model;
    }
    static xm_status set_input(xm_infer *r, uint32_t, const xm_host_tensor *t, xm_error *)
    {
        const int64_t *ids = static_cast<const int64_t *>(t->data);
        of(r)->fed.assign(ids, ids + t->dim[1]);
        return XM_OK;
    }
    static xm_status infer(xm_infer *r, xm_error *err)
    {
        ScriptedModel *m = of(r);
        if (m->cancelled)
            return xm_fail(err, XM_CANCELLED, "the run was cancelled");
        if (m->runs++ == m->fails_at)
            return xm_fail(err, XM_DEVICE, "the device is gone");
        m->logits.clear();
        for (size_t i = 0; i < m->fed.size(); i++) {
            m->state.push_back(m->fed[i]);
            if (!m->gives_all && i + 1 < m->fed.size())
                continue;
            const std::vector<float> row = m->script(m->state);
            m->logits.insert(m->logits.end(), row.begin(), row.end());
        }
        return XM_OK;
    }
    static xm_status output(xm_infer *r, uint32_t, xm_host_tensor *t, xm_error *)
    {
        *t = {};
        t->element = XM_F32;
        t->rank = 3;
        t->dim[0] = 1;
        t->dim[1] = (int64_t)(of(r)->logits.size() / VOCABULARY);
        t->dim[2] = VOCABULARY;
        t->data = of(r)->logits.data();
        t->bytes = of(r)->logits.size() * sizeof(float);
        return XM_OK;
    }
    static xm_status create_request(xm_compiled *c, xm_infer **out, xm_error *)
    {
        static const xm_infer_ops all = [] {
            xm_infer_ops ops = {};
            ops.set_input = set_input;
            ops.infer = infer;
            ops.output = output;
            ops.reset = [](xm_infer *r) { of(r)->state.clear(); };
            ops.truncate = [](xm_infer *r, uint64_t past) { of(r)->state.resize(past); };
            ops.past = [](const xm_infer *r) { return (uint64_t)of(r)->state.size(); };
            ops.cancel = [](xm_infer *r) { of(r)->cancelled = true; };
            ops.resume = [](xm_infer *r) { of(r)->cancelled = false; };
            ops.destroy = [](xm_infer *r) { delete reinterpret_cast<Request *>(r); };
            return ops;
        }();
        static const xm_infer_ops no_truncate = [] {
            xm_infer_ops ops = all;
            ops.truncate = nullptr;
            return ops;
        }();
        ScriptedModel *m = reinterpret_cast<ScriptedModel *>(c);
        Request *r = new Request();
        r->base.ops = m->can_truncate ? &all : &no_truncate;
        r->model = m;
        m->state.clear();
        *out = &r->base;
        return XM_OK;
    }
};

inline std::vector<float>
only(int32_t id)
{
    std::vector<float> logits(VOCABULARY, 0.0f);
    logits[(size_t)id] = 1.0f;
    return logits;
}

/* Returns a script that generates the tokens of `answer` after a prompt of n tokens, then ends
 * the text. */
inline Script
saying(const Ids &answer, size_t n)
{
    return [=](const Ids &state) {
        size_t at = state.size() - n;
        return only(at < answer.size() ? answer[at] : (int32_t)IM_END);
    };
}

/* Returns the hash of a text: of its last id and the hash of the ids before it. Scripts that
 * choose any id derive their logits from it. */
inline uint32_t
digest(int32_t id, uint32_t before = 1)
{
    return (before + (uint32_t)id + 1) * 1664525u + 1013904223u;
}
inline std::vector<float>
ramble_from(uint32_t seed)
{
    std::vector<float> logits;
    for (int i = 0; i < VOCABULARY; i++) {
        seed = seed * 1664525u + 1013904223u;
        logits.push_back((float)(seed >> 8) / (float)(1 << 24));
    }
    return logits;
}
inline std::vector<float>
rambling(const Ids &state)
{
    uint32_t seed = 1;
    for (int32_t id : state)
        seed = digest(id, seed);
    return ramble_from(seed);
}

/* A package whose tokenizer has letters, the two bytes of "é", tokens that begin and end
 * thoughts, an end token and a special token. */
class SmallPackage
{
  public:
    explicit SmallPackage(const std::string &tmpl = "{{ messages[0].content }}<think>")
    {
        folder.write("openvino_model.xml", "");
        folder.write("tokenizer.json", R"({"model":{"type":"BPE","vocab":{
            "a":0,"b":1,"c":2,"#":3,"<0xC3>":4,"<0xA9>":5," ":6,"x":7},"merges":[]},
            "decoder":{"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Fuse"}]},
            "added_tokens":[{"id":8,"content":"<|im_end|>","special":true},
                            {"id":9,"content":"<think>","special":false},
                            {"id":10,"content":"</think>","special":false},
                            {"id":11,"content":"<s>","special":true},
                            {"id":12,"content":"<tool_call>","special":false},
                            {"id":13,"content":"</tool_call>","special":false},
                            {"id":14,"content":"{\"name\":\"f\"}","special":false}]})");
        folder.write("chat_template.jinja", tmpl + "{# </think> #}");
        xm_error err = {};
        EXPECT_EQ(xm_package_open(folder.path.c_str(), &p, &err), XM_OK) << err.text;
    }
    ~SmallPackage()
    {
        xm_package_close(p);
    }
    SmallPackage(const SmallPackage &) = delete;

    Folder folder{"small_package"};
    xm_package *p = nullptr;
};

/* A session, the settings of its next run, and the pieces and result of the last run. */
class Session
{
  public:
    explicit Session(ScriptedModel &model, xm_package *package = nullptr)
    {
        EXPECT_EQ(xm_session_create(&model.base, package, &s, &err), XM_OK) << err.text;
        run.max_tokens = 100;
        run.on_piece = [](const xm_piece *piece, void *ctx) {
            Session *self = static_cast<Session *>(ctx);
            self->pieces.push_back(
                {piece->id, piece->part, std::string(piece->text, piece->n)});
            return !self->on_piece || self->on_piece();
        };
        run.ctx = this;
    }
    ~Session()
    {
        xm_generation_result_free(&got);
        xm_session_destroy(s);
    }
    Session(const Session &) = delete;

    xm_status generate()
    {
        pieces.clear();
        err = {};
        return xm_session_run(s, &run, &got, &err);
    }
    xm_status generate(const Ids &prompt)
    {
        run.prompt = {};
        run.prompt.kind = XM_PROMPT_IDS;
        run.prompt.ids = prompt.data();
        run.prompt.n = prompt.size();
        return generate();
    }
    xm_status generate(xm_prompt_kind kind, const std::string &text)
    {
        run.prompt = {};
        run.prompt.kind = kind;
        run.prompt.text = text.c_str();
        run.prompt.n = text.size();
        return generate();
    }
    Ids ids() const
    {
        return Ids(got.ids.ids, got.ids.ids + got.ids.n);
    }
    Ids prompt() const
    {
        return Ids(got.prompt.ids, got.prompt.ids + got.prompt.n);
    }
    std::string text() const
    {
        return std::string(xm_strbuf_text(&got.text), got.text.n);
    }
    /* Returns the text of all pieces of this part, joined. */
    std::string shown(xm_answer_part part = XM_ANSWER_TEXT) const
    {
        std::string all;
        for (const auto &piece : pieces)
            all += piece.part == part ? piece.text : "";
        return all;
    }

    struct Piece {
        int32_t id;
        xm_answer_part part;
        std::string text;
    };
    xm_session *s = nullptr;
    xm_generation run = {};
    xm_generation_result got = {};
    xm_error err = {};
    std::vector<Piece> pieces;
    std::function<bool()> on_piece;
};

#endif
