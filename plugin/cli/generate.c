/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe generate: continues a prompt, token by token.
 */
#include "plugin/generate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/cli.h"
#include "plugin/cli/json_out.h"
#include "plugin/cli/progress.h"
#include "plugin/cli/text_out.h"
#include "plugin/expert_caches.h"
#include "runtime/read_rate.h"
#include "runtime/util/log.h"
#include "runtime/util/mapped_file.h"

struct args {
    struct xm_cli_generation generation; /* first: the common options */
    const char *prompt, *file, *ids;
    struct xm_sampling sampling; /* what the common options say of it */
    uint64_t tokens;
    bool ignore_eos, verbose;
};

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    { 'p', "prompt",      XM_CLI_TEXT,  AT(prompt),      "TEXT", "the text to continue" },
    { 'f', "file",        XM_CLI_TEXT,  AT(file),        "FILE", "the text to continue, from a file" },
    { 0,   "ids",         XM_CLI_TEXT,  AT(ids),         "IDS",  "token ids to continue: 1,2,3 or @FILE (.npy or text)" },
    { 'n', "tokens",      XM_CLI_COUNT, AT(tokens),      "N",    "at most N new tokens (128)" },
    { 0,   "ignore-eos",  XM_CLI_FLAG,  AT(ignore_eos),  NULL,   "go on behind the end of the text" },
    { 'v', "verbose",     XM_CLI_FLAG,  AT(verbose),     NULL,   "times, passes and memory on standard error" },
};
#undef AT
/* clang-format on */

/* ---- what it cost ------------------------------------------------------------------ */

struct costs {
    double load_s;
    struct xm_generation_times times;
    uint64_t weights, host_weights, activations, scratch, kv, io;
    struct xm_memory_stats kinds;
    struct xm_expert_cache_stats experts; /* of their cache */
    double load_peak_rss, peak_rss;       /* MiB */
    double read_rate; /* bytes a second that streaming reaches; 0: not known */
};

enum { GIGA = 1000000000 };

static double
rate(uint64_t n, double seconds)
{
    return seconds > 0.0 ? (double)n / seconds : 0.0;
}

/* 2 x multiply-adds of the prompt a second. */
static double
prompt_gflops(const struct xm_generation_times *t)
{
    return 2 * rate(t->prompt_multiply_adds, t->prompt_s) / GIGA;
}

static double
decode_gbps(const struct xm_generation_times *t)
{
    return rate(t->decode_weight_bytes, t->decode_s) / GIGA;
}

/* Right after the run, so that both figures are of the same moment; out of the weights that
 * every token reads, where they lie. */
static void
measure_reading(const struct xm_cli_model *m, struct costs *c)
{
    enum { MOST = 64 };
    const double seconds = 0.25;
    const struct xm_program *p = m->compiled->program;
    struct xm_buffer *dense[MOST];
    size_t n = 0;
    struct xm_error err = {0};
    if (!p || !c->times.decode_tokens)
        return;
    for (uint32_t i = 0; i < p->n_weights && n < MOST; i++) {
        if (p->weights[i]->host.experts == 1)
            dense[n++] = p->weights[i]->data;
    }
    if (xm_read_rate(p->engine, dense, n, seconds, &c->read_rate, &err) != XM_OK)
        xm_log(XM_LOG_INFO, "the streaming rate is not known: %s", err.text);
}

static void
measure_cache(const struct xm_program *p, struct costs *c)
{
    struct xm_error err = {0};
    if (xm_expert_caches_stats(p, &c->experts, &err) != XM_OK)
        xm_log(XM_LOG_INFO, "the hits of the expert cache are not known: %s", err.text);
}

static void
find_costs(const struct xm_cli_model *m, const struct xm_infer *r, struct costs *c)
{
    c->load_s = m->load_s;
    c->load_peak_rss = m->load_peak_rss;
    c->peak_rss = xm_cli_peak_rss();
    if (!m->compiled->program || !r->request)
        return;
    struct xm_request_stats stats;
    xm_request_stats(r->request, &stats);
    xm_engine_memory_stats(m->compiled->program->engine, &c->kinds);
    c->weights = m->compiled->program->weight_bytes;
    c->host_weights = m->compiled->program->host_weight_bytes;
    measure_cache(m->compiled->program, c);
    c->activations = stats.activation_bytes;
    c->scratch = stats.scratch_bytes;
    c->kv = stats.kv_bytes;
    c->io = stats.io_bytes;
}

static void
print_experts(const struct costs *c)
{
    const struct xm_expert_cache_stats *s = &c->experts;
    if (c->host_weights)
        fprintf(stderr, "experts: %.1f MiB stay in host memory and are read from there\n",
                (double)c->host_weights / 1048576.0);
    if (s->bytes)
        fprintf(stderr,
                "         a cache of %.1f MiB holds %" PRIu64 " of them: %" PRIu64
                " hits, %" PRIu64 " misses (%.1f %% hits), %.1f MiB fetched\n",
                (double)s->bytes / 1048576.0, s->slots, s->hits, s->misses,
                100 * rate(s->hits, (double)(s->hits + s->misses)),
                (double)s->fetched_bytes / 1048576.0);
}

static void
print_costs(const struct xm_cli_model *m, const struct costs *c)
{
    const struct xm_generation_times *t = &c->times;
    struct xm_strbuf device = {0};
    xm_cli_model_device(m, &device);
    fprintf(stderr, "device:  %s\n", xm_strbuf_text(&device));
    xm_strbuf_free(&device);
    fprintf(stderr, "passes: ");
    for (size_t i = 0; i < m->compiled->n_reports; i++) {
        if (m->compiled->reports[i].progress)
            fprintf(stderr, " %s", m->compiled->reports[i].pass->public_name);
    }
    fprintf(stderr, "\nload:    %.3f s\n", c->load_s);
    fprintf(stderr, "prompt:  %" PRIu64 " tokens, %.3f s, %.2f tokens/s, %.1f GFLOP/s\n",
            t->prompt_tokens, t->prompt_s, rate(t->prompt_tokens, t->prompt_s),
            prompt_gflops(t));
    fprintf(stderr, "decode:  %" PRIu64 " tokens, %.3f s, %.2f tokens/s",
            t->decode_tokens, t->decode_s, rate(t->decode_tokens, t->decode_s));
    fprintf(stderr, ", %.2f GB/s of weights", decode_gbps(t));
    if (c->read_rate > 0)
        fprintf(stderr, ", %.0f %% of the %.2f GB/s that streaming reaches",
                100 * decode_gbps(t) * GIGA / c->read_rate, c->read_rate / GIGA);
    fputc('\n', stderr);
    fprintf(stderr,
            "memory:  weights %.1f MiB, KV cache %.1f MiB, activations %.1f MiB, scratch "
            "%.1f MiB; allocated %.1f MiB, at most %.1f MiB\n",
            (double)c->weights / 1048576.0, (double)c->kv / 1048576.0,
            (double)c->activations / 1048576.0, (double)c->scratch / 1048576.0,
            (double)c->kinds.total_now / 1048576.0,
            (double)c->kinds.total_peak / 1048576.0);
    for (int k = 0; k < XM_MEMORY_KIND_COUNT; k++) {
        if (c->kinds.buffers[k])
            fprintf(stderr,
                    "         %s: %.1f MiB, at most %.1f MiB, %" PRIu64 " buffers made\n",
                    xm_memory_kind_text((enum xm_memory_kind)k),
                    (double)c->kinds.now[k] / 1048576.0,
                    (double)c->kinds.peak[k] / 1048576.0, c->kinds.buffers[k]);
    }
    print_experts(c);
    fprintf(stderr, "process: at most %.1f MiB resident, %.1f MiB when loaded\n",
            c->peak_rss, c->load_peak_rss);
}

static void
add_expert_cache(struct xm_json_out *j, const struct xm_expert_cache_stats *s)
{
    if (!s->bytes)
        return;
    yyjson_mut_val *o = xm_json_add_object(j, NULL, "expert_cache");
    xm_json_add_whole(j, o, "slots", s->slots);
    xm_json_add_whole(j, o, "hits", s->hits);
    xm_json_add_whole(j, o, "misses", s->misses);
    xm_json_add_whole(j, o, "fetched_bytes", s->fetched_bytes);
}

static void
add_costs(struct xm_json_out *j, const struct xm_cli_model *m, const struct costs *c)
{
    const struct xm_generation_times *t = &c->times;
    struct xm_strbuf device = {0};
    xm_cli_model_device(m, &device);
    xm_json_add_text(j, NULL, "device", xm_strbuf_text(&device), device.n);
    xm_strbuf_free(&device);
    yyjson_mut_val *passes = xm_json_add_array(j, NULL, "passes");
    for (size_t i = 0; i < m->compiled->n_reports; i++) {
        const struct xm_pass_report *r = &m->compiled->reports[i];
        if (r->progress)
            xm_json_add_text(j, passes, NULL, r->pass->public_name,
                             strlen(r->pass->public_name));
    }
    yyjson_mut_val *times = xm_json_add_object(j, NULL, "timings");
    xm_json_add_real(j, times, "load_s", c->load_s);
    xm_json_add_real(j, times, "prompt_s", t->prompt_s);
    xm_json_add_real(j, times, "decode_s", t->decode_s);
    xm_json_add_whole(j, times, "prompt_tokens", t->prompt_tokens);
    xm_json_add_whole(j, times, "decode_tokens", t->decode_tokens);
    xm_json_add_real(j, times, "prompt_tps", rate(t->prompt_tokens, t->prompt_s));
    xm_json_add_real(j, times, "decode_tps", rate(t->decode_tokens, t->decode_s));
    xm_json_add_real(j, times, "prompt_gflops", prompt_gflops(t));
    xm_json_add_real(j, times, "decode_weight_gbps", decode_gbps(t));
    if (c->read_rate > 0) {
        xm_json_add_real(j, times, "streaming_gbps", c->read_rate / GIGA);
        xm_json_add_real(j, times, "decode_share_of_streaming",
                         decode_gbps(t) * GIGA / c->read_rate);
    }
    add_expert_cache(j, &c->experts);
    yyjson_mut_val *memory = xm_json_add_object(j, NULL, "memory");
    xm_json_add_whole(j, memory, "weights", c->weights);
    xm_json_add_whole(j, memory, "host_weights", c->host_weights);
    xm_json_add_whole(j, memory, "expert_cache", c->experts.bytes);
    xm_json_add_whole(j, memory, "kv_cache", c->kv);
    xm_json_add_whole(j, memory, "activations", c->activations);
    xm_json_add_whole(j, memory, "scratch", c->scratch);
    xm_json_add_whole(j, memory, "inputs_and_results", c->io);
    xm_json_add_whole(j, memory, "allocated", c->kinds.total_now);
    xm_json_add_whole(j, memory, "allocated_peak", c->kinds.total_peak);
    xm_json_add_whole(j, memory, "largest_buffer", c->kinds.largest);
    xm_cli_add_memory_kinds(j, xm_json_add_object(j, memory, "kinds"), &c->kinds);
    xm_json_add_real(j, memory, "peak_rss_after_load_mb", c->load_peak_rss);
    xm_json_add_real(j, memory, "peak_rss_mb", c->peak_rss);
}

static enum xm_status
print_json(const struct xm_cli_model *m, const struct costs *c,
           const struct xm_text_out *o, const struct xm_token_list *prompt,
           const struct xm_token_list *ids, struct xm_error *err)
{
    struct xm_json_out j;
    xm_json_begin(&j);
    xm_json_add_ids(&j, NULL, "prompt_ids", prompt->ids, prompt->n);
    xm_json_add_ids(&j, NULL, "ids", ids->ids, ids->n);
    if (o->has_text)
        xm_json_add_text(&j, NULL, "text", xm_strbuf_text(&o->text), o->text.n);
    else
        xm_json_add_text(&j, NULL, "note", "no tokenizer.json beside the model: no text",
                         43);
    xm_json_add_bool(&j, NULL, "cancelled", xm_cli_interrupted());
    add_costs(&j, m, c);
    enum xm_status s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}

/* ---- the run ----------------------------------------------------------------------- */

static enum xm_status
generate(struct xm_cli_model *m, const struct args *a, const struct xm_token_list *prompt,
         struct xm_text_out *o, struct xm_token_list *ids, struct costs *costs,
         struct xm_error *err)
{
    struct xm_generation run = {.prompt = prompt->ids,
                                .n_prompt = prompt->n,
                                .max_tokens = a->tokens,
                                .stop_ids = m->ids.eos,
                                .n_stop = a->ignore_eos ? 0 : (uint32_t)m->ids.n_eos,
                                .on_token = xm_text_out_token,
                                .ctx = o};
    struct xm_generator *g = NULL;
    XM_TRY(xm_generator_create(m->compiled, &a->sampling, &g, err));
    xm_cli_catch_interrupt(xm_generator_request(g));
    xm_progress_show("reading a prompt of %zu tokens", prompt->n);
    enum xm_status s = xm_generator_run(g, &run, ids, &costs->times, err);
    xm_cli_release_interrupt();
    xm_progress_clear();
    if (s == XM_CANCELLED && xm_cli_interrupted())
        s = XM_OK; /* what there is gets printed */
    if (xm_text_out_finish(o) != XM_OK && s == XM_OK)
        s = xm_fail(err, o->err.status, "%s", o->err.text);
    find_costs(m, xm_generator_request(g), costs);
    if (a->verbose && s == XM_OK)
        measure_reading(m, costs);
    xm_generator_destroy(g);
    return s;
}

static int
report(const struct xm_cli_model *m, const struct args *a, const struct costs *c,
       const struct xm_text_out *o, const struct xm_token_list *prompt,
       const struct xm_token_list *ids)
{
    struct xm_error err = {0};
    if (a->generation.target.json && print_json(m, c, o, prompt, ids, &err) != XM_OK)
        return xm_cli_failed(&err);
    if (a->verbose)
        print_costs(m, c);
    int code = xm_cli_flush();
    if (code != XM_EXIT_OK || !xm_cli_interrupted())
        return code;
    xm_cli_say_interrupted();
    return XM_EXIT_CANCELLED;
}

static int
run_prompt(struct xm_cli_model *m, const struct args *a,
           const struct xm_token_list *prompt)
{
    struct xm_error err = {0};
    struct xm_token_list ids = {0};
    struct costs costs = {0};
    struct xm_text_out o;
    bool json = a->generation.target.json;
    enum xm_status s = xm_text_out_begin(&o, m->tokenizer, &a->generation.stops, !json,
                                         json, false, &err);
    if (s == XM_OK && !o.has_text && o.stream)
        fputs("xemoe: no tokenizer.json beside the model: token ids instead of text\n",
              stderr);
    if (s == XM_OK)
        s = generate(m, a, prompt, &o, &ids, &costs, &err);
    int code = s == XM_OK ? report(m, a, &costs, &o, prompt, &ids) : xm_cli_failed(&err);
    xm_text_out_end(&o);
    xm_token_list_free(&ids);
    return code;
}

static int
run_model(struct xm_cli_model *m, const struct args *a, const char *text, size_t n)
{
    struct xm_token_list prompt = {0};
    int code = xm_cli_prompt(m, a->ids, text, n, &prompt);
    if (code == XM_EXIT_OK)
        code = run_prompt(m, a, &prompt);
    xm_token_list_free(&prompt);
    return code;
}

int
xm_cli_generate(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage =
            "xemoe generate -m PATH (-p TEXT | -f FILE | --ids IDS) [-n N] [options]",
        .about =
            "Continues a prompt and writes the text as it comes. Ctrl-C stops between\n"
            "tokens.\n",
        .common = xm_cli_generation_options,
        .n_common = XM_CLI_N_GENERATION_OPTIONS,
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
    };
    struct args a = {.generation = {.top_p = 1.0f}, .tokens = 128};
    struct xm_compile_options compile = {.last_logits = true};
    struct xm_mapped_file file = {0};
    struct xm_cli_model m;
    struct xm_error err = {0};
    bool done;
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (done)
        return code;
    if ((a.prompt != NULL) + (a.file != NULL) + (a.ids != NULL) != 1)
        return xm_cli_usage("give a prompt: one of -p TEXT, -f FILE and --ids IDS");
    if (a.prompt && !a.prompt[0])
        return xm_cli_usage("the prompt is empty: there is nothing to continue");
    code = xm_cli_sampling(&a.generation, &a.sampling);
    if (code != XM_EXIT_OK)
        return code;
    if (a.file && xm_mapped_file_open(a.file, &file, &err) != XM_OK)
        return xm_cli_failed(&err);
    if (a.verbose)
        xm_log_set_level(XM_LOG_INFO);
    code = xm_cli_model_open(&m, &a.generation.target, &compile);
    if (code == XM_EXIT_OK) {
        code = a.file ? run_model(&m, &a, (const char *)file.bytes, (size_t)file.n_bytes)
                      : run_model(&m, &a, a.prompt, a.prompt ? strlen(a.prompt) : 0);
        xm_cli_model_close(&m);
    }
    xm_mapped_file_close(&file);
    return code;
}
