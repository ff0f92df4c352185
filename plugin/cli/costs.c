/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/costs.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/rate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/util/log.h"
#include "runtime/util/number.h"
#include "transformations/pipeline.h"

enum { GIGA = 1000000000 };

static double
mib(uint64_t bytes)
{
    return (double)bytes / 1048576.0;
}

/* The rates to print; 0: not known. */
struct speeds {
    double prompt_tps, prompt_gflops; /* 2 x multiply-adds with weights */
    double decode_tps, decode_gbps;   /* decode_gbps: bytes of weights */
    double decode_share;              /* share of the streaming rate */
};

double
xm_costs_decode_rate(const struct xm_generation_times *t)
{
    return t->decode_tokens > 1 ? xm_rate((double)t->decode_tokens, t->decode_s) : 0.0;
}

static struct speeds
speeds_of(const struct xm_costs *c)
{
    const struct xm_generation_times *t = &c->times;
    struct speeds s = {
        .prompt_tps = xm_rate((double)t->prompt_tokens, t->prompt_s),
        .prompt_gflops = 2 * xm_rate((double)t->prompt_multiply_adds, t->prompt_s) / GIGA,
        .decode_tps = xm_costs_decode_rate(t)};
    if (s.decode_tps > 0.0)
        s.decode_gbps = xm_rate((double)t->decode_weight_bytes, t->decode_s) / GIGA;
    s.decode_share = xm_rate(s.decode_gbps * GIGA, c->read_rate);
    return s;
}

/* Called right after the run, so that both rates are of the same time if this one is measured.
 * Reads weights that every token needs, in the memory that holds them. */
void
xm_costs_measure_reading(const struct xm_cli_model *m, bool is_anew, struct xm_costs *c)
{
    const double seconds = 0.25;
    struct xm_compiled *compiled = m->compiled;
    struct xm_error err = {0};
    if (!compiled->ops->read_rate || !c->times.decode_tokens)
        return;
    if (!is_anew && compiled->ops->read_rate(compiled, 0.0, &c->read_rate, NULL) == XM_OK)
        return;
    if (compiled->ops->read_rate(compiled, seconds, &c->read_rate, &err) != XM_OK)
        xm_log(XM_LOG_INFO, "the read rate of the device is not known: %s", err.text);
}

void
xm_costs_measure_multiplying(const struct xm_cli_model *m, struct xm_costs *c)
{
    const double seconds = 0.25;
    struct xm_compiled *compiled = m->compiled;
    struct xm_error err = {0};
    if (compiled->ops->multiply_rate &&
        compiled->ops->multiply_rate(compiled, seconds, &c->multiply_rate, &err) != XM_OK)
        xm_log(XM_LOG_INFO, "the rate of multiply-adds is not known: %s", err.text);
}

static void
measure_cache(struct xm_compiled *compiled, struct xm_costs *c)
{
    struct xm_error err = {0};
    if (compiled->ops->expert_cache &&
        compiled->ops->expert_cache(compiled, &c->experts, &err) != XM_OK)
        xm_log(XM_LOG_INFO, "the hits of the expert cache are not known: %s", err.text);
}

void
xm_costs_find(const struct xm_cli_model *m, const struct xm_infer *r, struct xm_costs *c)
{
    c->load_s = m->load_s;
    c->load_peak_rss = m->load_peak_rss;
    c->peak_rss = xm_cli_peak_rss();
    if (!m->compiled->ops->stats || !r->ops->stats)
        return;
    struct xm_request_stats stats;
    struct xm_compiled_stats compiled;
    r->ops->stats(r, &stats);
    m->compiled->ops->stats(m->compiled, &compiled);
    c->kinds = compiled.memory;
    c->builds = compiled.builds;
    c->weights = compiled.weight_bytes;
    c->host_weights = compiled.host_weight_bytes;
    measure_cache(m->compiled, c);
    c->activations = stats.activation_bytes;
    c->scratch = stats.scratch_bytes;
    c->kv = stats.kv_bytes;
    c->io = stats.io_bytes;
    c->launches = stats.kernels;
    c->waits = stats.waits;
}

static void
print_experts(struct xm_lines *o, const struct xm_costs *c)
{
    const struct xm_expert_cache_stats *s = &c->experts;
    if (c->host_weights)
        xm_lines_add(o, "experts: %.1f MiB stay in host memory and are read from there\n",
                     mib(c->host_weights));
    if (s->bytes)
        xm_lines_add(o,
                     "         a cache of %.1f MiB holds %" PRIu64 " of them: %" PRIu64
                     " hits, %" PRIu64 " misses (%.1f %% hits), %.1f MiB fetched\n",
                     mib(s->bytes), s->slots, s->hits, s->misses,
                     100 * xm_rate((double)s->hits, (double)(s->hits + s->misses)),
                     mib(s->fetched_bytes));
}

static void
print_builds(struct xm_lines *o, const struct xm_build_stats *b)
{
    xm_lines_add(o,
                 "kernels: %" PRIu64 " built, %" PRIu64 " from the cache, %" PRIu64
                 " built at a launch; %.3f s in all, not included in prompt and decode\n",
                 b->built, b->loaded, b->launches, b->seconds);
}

static void
print_device(struct xm_lines *o, const struct xm_cli_model *m)
{
    struct xm_strbuf device = {0};
    xm_cli_model_device(m, &device);
    xm_lines_add(o, "device:  %s\n", xm_strbuf_text(&device));
    xm_strbuf_free(&device);
}

static void
print_passes(struct xm_lines *o, const struct xm_cli_model *m)
{
    xm_lines_add(o, "passes: ");
    for (size_t i = 0; i < m->compiled->n_reports; i++) {
        if (m->compiled->reports[i].progress)
            xm_lines_add(o, " %s", m->compiled->reports[i].pass->public_name);
    }
    xm_lines_add(o, "\n");
}

static void
print_tokens(struct xm_lines *o, const char *what, uint64_t n, double seconds, double tps)
{
    xm_lines_add(o, "%s:  %" PRIu64 " token%s, %.3f s", what, n, xm_plural(n), seconds);
    if (tps > 0.0)
        xm_lines_add(o, ", %.2f tokens/s", tps);
}

static void
print_speed(struct xm_lines *o, const struct xm_costs *c)
{
    const struct xm_generation_times *t = &c->times;
    const struct speeds s = speeds_of(c);
    print_tokens(o, "prompt", t->prompt_tokens, t->prompt_s, s.prompt_tps);
    if (s.prompt_gflops > 0.0)
        xm_lines_add(o, ", %.1f GFLOP/s", s.prompt_gflops);
    if (t->reused_tokens)
        xm_lines_add(o, "; %" PRIu64 " more from the KV cache", t->reused_tokens);
    xm_lines_add(o, "\n");
    print_tokens(o, "decode", t->decode_tokens, t->decode_s, s.decode_tps);
    if (s.decode_gbps > 0.0)
        xm_lines_add(o, ", %.2f GB/s of weights", s.decode_gbps);
    if (s.decode_share > 0.0)
        xm_lines_add(o, ", %.0f %% of the device's read rate, %.2f GB/s",
                     100 * s.decode_share, c->read_rate / GIGA);
    if (t->decode_tokens && c->launches)
        xm_lines_add(o, ", %" PRIu64 " launches and %" PRIu64 " wait%s per token",
                     c->launches, c->waits, xm_plural(c->waits));
    xm_lines_add(o, "\n");
}

static void
print_memory(struct xm_lines *o, const struct xm_costs *c)
{
    xm_lines_add(
        o,
        "memory:  weights %.1f MiB, KV cache %.1f MiB, activations %.1f MiB, scratch "
        "%.1f MiB; allocated %.1f MiB, at most %.1f MiB\n",
        mib(c->weights), mib(c->kv), mib(c->activations), mib(c->scratch),
        mib(c->kinds.total_now), mib(c->kinds.total_peak));
    for (int k = 0; k < XM_MEMORY_KIND_COUNT; k++) {
        if (c->kinds.buffers[k])
            xm_lines_add(
                o,
                "         %s: %.1f MiB, at most %.1f MiB, %" PRIu64 " buffers created\n",
                xm_memory_kind_text((enum xm_memory_kind)k), mib(c->kinds.now[k]),
                mib(c->kinds.peak[k]), c->kinds.buffers[k]);
    }
}

void
xm_costs_print(const struct xm_cli_model *m, const struct xm_costs *c)
{
    struct xm_lines o = xm_lines_to(stderr);
    print_device(&o, m);
    print_passes(&o, m);
    xm_lines_add(&o, "load:    %.3f s\n", c->load_s);
    print_builds(&o, &c->builds);
    print_speed(&o, c);
    print_memory(&o, c);
    print_experts(&o, c);
    xm_lines_add(&o, "process: at most %.1f MiB resident, %.1f MiB when loaded\n",
                 c->peak_rss, c->load_peak_rss);
    xm_lines_end(&o);
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
add_builds(struct xm_json_out *j, const struct xm_build_stats *b)
{
    xm_json_add_whole(j, NULL, "kernels_built", b->built);
    xm_json_add_whole(j, NULL, "kernels_loaded", b->loaded);
    xm_json_add_whole(j, NULL, "launches_built", b->launches);
    xm_json_add_whole(j, NULL, "kernel_cache_bytes_written", b->cache_bytes);
}

static void
add_device(struct xm_json_out *j, const struct xm_cli_model *m)
{
    struct xm_strbuf device = {0};
    xm_cli_model_device(m, &device);
    xm_json_add_text(j, NULL, "device", xm_strbuf_text(&device), device.n);
    xm_strbuf_free(&device);
}

static void
add_passes(struct xm_json_out *j, const struct xm_cli_model *m)
{
    yyjson_mut_val *passes = xm_json_add_array(j, NULL, "passes");
    for (size_t i = 0; i < m->compiled->n_reports; i++) {
        const struct xm_pass_report *r = &m->compiled->reports[i];
        if (r->progress)
            xm_json_add_text(j, passes, NULL, r->pass->public_name,
                             strlen(r->pass->public_name));
    }
}

static void
add_timings(struct xm_json_out *j, const struct xm_costs *c)
{
    const struct xm_generation_times *t = &c->times;
    const struct speeds s = speeds_of(c);
    const struct {
        const char *key;
        double value;
    } rates[] = {{"prompt_tps", s.prompt_tps},
                 {"decode_tps", s.decode_tps},
                 {"prompt_gflops", s.prompt_gflops},
                 {"decode_weight_gbps", s.decode_gbps},
                 {"streaming_gbps", c->read_rate / GIGA},
                 {"decode_share_of_streaming", s.decode_share}};
    yyjson_mut_val *times = xm_json_add_object(j, NULL, "timings");
    xm_json_add_real(j, times, "load_s", c->load_s);
    xm_json_add_real(j, times, "build_s", c->builds.seconds);
    xm_json_add_real(j, times, "prompt_s", t->prompt_s);
    xm_json_add_real(j, times, "decode_s", t->decode_s);
    xm_json_add_whole(j, times, "prompt_tokens", t->prompt_tokens);
    xm_json_add_whole(j, times, "reused_tokens", t->reused_tokens);
    xm_json_add_whole(j, times, "decode_tokens", t->decode_tokens);
    for (size_t i = 0; i < XM_ARRAY_LEN(rates); i++)
        if (rates[i].value > 0.0)
            xm_json_add_real(j, times, rates[i].key, rates[i].value);
}

static void
add_last_run(struct xm_json_out *j, const struct xm_costs *c)
{
    yyjson_mut_val *run = xm_json_add_object(j, NULL, "last_run");
    xm_json_add_whole(j, run, "launches", c->launches);
    xm_json_add_whole(j, run, "waits", c->waits);
}

static void
add_memory(struct xm_json_out *j, const struct xm_costs *c)
{
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

void
xm_costs_add_json(struct xm_json_out *j, const struct xm_cli_model *m,
                  const struct xm_costs *c)
{
    add_device(j, m);
    add_passes(j, m);
    add_timings(j, c);
    add_last_run(j, c);
    add_builds(j, &c->builds);
    add_expert_cache(j, &c->experts);
    add_memory(j, c);
}
