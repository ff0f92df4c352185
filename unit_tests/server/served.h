/* SPDX-License-Identifier: Apache-2.0
 *
 * A server over a scripted model, which tests call without a socket.
 */
#ifndef XM_UNIT_TESTS_SERVER_SERVED_H
#define XM_UNIT_TESTS_SERVER_SERVED_H

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "plugin/server/server.h"
#include "unit_tests/pipeline/scheduled_jobs.h"

/* The server's response to a request. */
struct Answer {
    int status = 0;
    std::string type, text;
};

inline bool
has(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

/* Returns all values of the key in JSON text, joined; each must be a string without escapes. */
inline std::string
values_of(const std::string &json, const std::string &key)
{
    std::string all;
    const std::string begin = "\"" + key + "\":\"";
    for (size_t at = 0; (at = json.find(begin, at)) != std::string::npos;) {
        at += begin.size();
        all += json.substr(at, json.find('"', at) - at);
    }
    return all;
}

inline size_t
count_of(const std::string &text, const std::string &part)
{
    size_t n = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at++)
        n++;
    return n;
}

class Served
{
  public:
    /* `tokenizer` and `tmpl` replace the files of the small package unless they are "".
     * `vocabulary` is that of the model. */
    explicit Served(size_t slots = 4, size_t queue = 64, uint64_t context = 512,
                    const std::string &tokenizer = "", const std::string &tmpl = "",
                    uint64_t vocabulary = VOCABULARY)
    {
        model.vocabulary = vocabulary;
        if (!tokenizer.empty())
            package.folder.write("tokenizer.json", tokenizer);
        if (!tmpl.empty())
            package.folder.write("chat_template.jinja", tmpl);
        EXPECT_EQ(xm_package_read(package.p, XM_PACKAGE_TOKENIZER, &err), XM_OK)
            << err.text;
        EXPECT_EQ(xm_package_read(package.p, XM_PACKAGE_GENERATION, &err), XM_OK);
        EXPECT_EQ(xm_package_read(package.p, XM_PACKAGE_CHAT_TEMPLATE, &err), XM_OK);
        xm_served_options options = {};
        options.name = "small";
        options.slots = slots;
        options.most_waiting = queue;
        options.context = context;
        options.sampling.top_p = 1.0f;
        model.keeps_runs = false;
        EXPECT_EQ(xm_served_create(&model.base, package.p, &options, &served, &err),
                  XM_OK)
            << err.text;
        server.models = &served;
        server.n_models = 1;
        server.host = "127.0.0.1";
        server.most_body = 1 << 20;
    }
    ~Served()
    {
        xm_served_destroy(served);
    }
    Served(const Served &) = delete;

    /* Returns the text of these ids, special tokens included. */
    std::string text_of(const Ids &ids) const
    {
        xm_strbuf out = {};
        xm_tokenizer_decode(package.p->tokenizer, ids.data(), ids.size(), true, &out,
                            nullptr);
        std::string text(xm_strbuf_text(&out), out.n);
        xm_strbuf_free(&out);
        return text;
    }

    Answer ask(const std::string &path, const std::string &body,
               const char *method = "POST")
    {
        xm_request q = {};
        q.method = method;
        q.path = path.c_str();
        q.content_type = "application/json";
        return ask(q, body);
    }
    Answer ask(const xm_request &q, const std::string &body)
    {
        xm_exchange *x = nullptr;
        Waiter waiter;
        Answer a;
        if (xm_exchange_create(&server, &x, nullptr) != XM_OK)
            return a;
        x->request = q;
        x->on_change = [](void *ctx) {
            Waiter *w = static_cast<Waiter *>(ctx);
            std::lock_guard<std::mutex> lock(w->mutex);
            w->changed = true;
            w->wake.notify_one();
        };
        x->ctx = &waiter;
        if (xm_server_admit(x, body.size())) {
            xm_strbuf_add_n(&x->request.body, body.data(), body.size());
            xm_server_handle(x);
        }
        for (bool over = false; !over;) {
            waiter.wait();
            xm_exchange_lock(x);
            over = x->is_over;
            a.text.append(xm_strbuf_text(&x->out) + x->n_sent, x->out.n - x->n_sent);
            xm_strbuf_clear(&x->out);
            x->n_sent = 0;
            a.status = x->status;
            a.type = x->type ? x->type : "";
            if (over)
                x->on_change = nullptr;
            xm_exchange_unlock(x);
        }
        xm_exchange_unref(x);
        return a;
    }

    SequenceModel model;
    SmallPackage package{"{% for m in messages %}{{ m.content }}{% endfor %}<think>"
                         "{# tools #}"};
    xm_served *served = nullptr;
    xm_server server = {};
    xm_error err = {};

  private:
    struct Waiter {
        std::mutex mutex;
        std::condition_variable wake;
        bool changed = false;
        void wait()
        {
            std::unique_lock<std::mutex> lock(mutex);
            wake.wait_for(lock, std::chrono::seconds(30), [this] { return changed; });
            if (!changed)
                throw std::runtime_error("nothing has come for 30 s");
            changed = false;
        }
    };
};

#endif
