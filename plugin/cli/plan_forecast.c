/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/plan_forecast.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/program_util/rate.h"
#include "runtime/kept.h"

/* ---- options ------------------------------------------------------------------------- */

int
xm_plan_read_bandwidths(const char *list, struct xm_rates *out, uint32_t n)
{
    const char *at = list;
    struct xm_error err = {0};
    uint32_t found = 0;
    double rate;
    if (!list)
        return XM_EXIT_OK;
    do {
        if (xm_rate_read(&at, "GB/s", &rate, &err) != XM_OK)
            return xm_cli_usage(
                "option --bandwidth: %s; it takes GB/s above 0, as 450 or "
                "450,380",
                err.text);
        if (found < n)
            out[found].read = 1e9 * rate;
        found++;
    } while (*at == ',' && at++);
    if (n == 1 && found != 1)
        return xm_cli_usage("option --bandwidth takes one number of GB/s for one device, "
                            "with '.' as its decimal point; found '%.60s'",
                            list);
    if (found != 1 && found != n)
        return xm_cli_usage("option --bandwidth takes GB/s, one number for all devices "
                            "or one for each of the %u; found '%.60s'",
                            n, list);
    for (uint32_t i = 0; i < n; i++) {
        out[i].read = i < found ? out[i].read : out[0].read;
        out[i].source = XM_RATES_GIVEN;
    }
    return XM_EXIT_OK;
}

int
xm_plan_read_link(const char *option, const char *text, struct xm_link *out)
{
    static const char forms[] = "GB/s and microseconds above 0, as 25,5";
    double rate = 0.0, us = 0.0;
    struct xm_error err = {0};
    const char *at = text;
    enum xm_status s = xm_rate_read(&at, "GB/s", &rate, &err);
    const bool has_two = *at == ',' && !strchr(at + 1, ',');
    at += *at == ',';
    if (s == XM_OK && has_two)
        s = xm_rate_read(&at, "us", &us, &err);
    if (s != XM_OK)
        return xm_cli_usage("option %s: %s; it takes %s", option, err.text, forms);
    if (!has_two)
        return xm_cli_usage("option %s takes %s; found '%.60s'", option, forms, text);
    *out = (struct xm_link){.rate = 1e9 * rate, .latency_s = 1e-6 * us};
    return XM_EXIT_OK;
}

/* ---- rates --------------------------------------------------------------------------- */

/* Names a stored rate; it includes the format of the weights, because kernels of other formats
 * reach other rates. */
static void
name_rate(const struct xm_plan *p, const char *what, char out[XM_KEPT_TEXT])
{
    snprintf(out, XM_KEPT_TEXT, "%s %s", what, p->weight_format);
}

void
xm_plan_find_rates(const struct xm_plan *p, const char *cache_dir, struct xm_rates *rates)
{
    const struct xm_rates given = *rates;
    char reading[XM_KEPT_TEXT], multiplying[XM_KEPT_TEXT];
    double read, multiply;
    xm_rates_of_card(&p->info, rates);
    if (p->weight_format) {
        name_rate(p, "decode reads", reading);
        name_rate(p, "prompts multiply", multiplying);
        if (xm_kept_rate_load(cache_dir, &p->info, reading, &read) &&
            xm_kept_rate_load(cache_dir, &p->info, multiplying, &multiply)) {
            rates->read = read;
            rates->multiply = multiply;
            rates->source = XM_RATES_MEASURED;
        }
    }
    if (given.source == XM_RATES_GIVEN) {
        rates->read = given.read;
        rates->source = XM_RATES_GIVEN;
    }
}

void
xm_plan_keep_rates(const struct xm_plan *p, const char *cache_dir, double token_s,
                   double prompt_s)
{
    char reading[XM_KEPT_TEXT], multiplying[XM_KEPT_TEXT];
    struct xm_rates rates;
    xm_rates_of_card(&p->info, &rates);
    if (!p->weight_format ||
        !xm_rates_fit(&rates, &p->token_work, token_s, &p->prompt_work, prompt_s))
        return;
    name_rate(p, "decode reads", reading);
    name_rate(p, "prompts multiply", multiplying);
    xm_kept_rate_store(cache_dir, &p->info, reading, rates.read);
    xm_kept_rate_store(cache_dir, &p->info, multiplying, rates.multiply);
}

/* ---- printing ------------------------------------------------------------------------------ */

static void
print_run(struct xm_lines *o, const char *what, const struct xm_run_seconds *s,
          uint64_t tokens)
{
    const double rate = (double)tokens / s->all;
    xm_lines_add(o, "%s: %.*f ms, %.*f tokens/s", what, s->all < 0.1 ? 2 : 0,
                 1e3 * s->all, rate < 1000.0 ? 1 : 0, rate);
    if (s->exchanges > 0.0)
        xm_lines_add(o, ", of which exchanges take %.0f %%",
                     100.0 * s->exchanges / s->all);
    xm_lines_add(o, "\n");
}

static bool
is_same(const struct xm_rates *a, const struct xm_rates *b)
{
    return a->source == b->source && a->read == b->read && a->multiply == b->multiply;
}

/* Prints "  a770: kernels read 420 GB/s and multiply-add 34.4 TFLOP/s, taken as 75 and 25 % of its
 * specifications". */
static void
print_rates(struct xm_lines *o, const struct xm_rates *r, const char *name)
{
    char shares[80] = "";
    if (r->source == XM_RATES_CARD)
        snprintf(shares, sizeof(shares),
                 ", taken as %.0f and %.0f %% of its specifications",
                 100.0 * xm_usual_read_share, 100.0 * xm_usual_multiply_share);
    xm_lines_add(o, "  %s: kernels read %.4g GB/s", name, r->read / 1e9);
    if (r->multiply > 0.0)
        xm_lines_add(o, " and multiply-add %.3g TFLOP/s", r->multiply / 1e12);
    xm_lines_add(o, "%s%s%s\n", shares, r->is_beside ? " beside the others" : "",
                 r->source == XM_RATES_MEASURED ? ", as 'xemoe bench' measured" : "");
}

/* Prints "  a token on b580 alone, which is faster: 8.12 ms, 123.2 tokens/s". */
static void
print_alone(struct xm_lines *o, const struct xm_plan_forecast *f, const char *what,
            const struct xm_run_seconds *mesh, const struct xm_run_seconds *alone,
            uint64_t tokens)
{
    char line[96];
    if (!f->alone || !(alone->all > 0.0) || !(alone->all < mesh->all))
        return;
    snprintf(line, sizeof(line), "%s on %s alone, which is faster", what, f->alone);
    print_run(o, line, alone, tokens);
}

void
xm_plan_print_alone(struct xm_lines *o, const struct xm_plan_forecast *f,
                    const char *prefix)
{
    char prompt[32], token[32];
    snprintf(prompt, sizeof(prompt), "%sthe prompt", prefix);
    snprintf(token, sizeof(token), "%sa token", prefix);
    print_alone(o, f, prompt, &f->prompt, &f->alone_prompt, f->prompt_tokens);
    print_alone(o, f, token, &f->token, &f->alone_token, 1);
}

void
xm_plan_print_forecast(struct xm_lines *o, const struct xm_plan_forecast *f)
{
    char what[48];
    if (f->has_host_experts) {
        xm_lines_add(o, "the speed is not known if experts are read from host memory\n");
        return;
    }
    if (!(f->token.all > 0.0)) {
        xm_lines_add(o, "the speed is not known: run 'xemoe bench' on the device, or "
                        "give --bandwidth or a card (--device-as b580)\n");
        return;
    }
    xm_lines_add(o, "expected:\n");
    if (f->prompt.all > 0.0) {
        snprintf(what, sizeof(what), "  a prompt of %" PRIu64, f->prompt_tokens);
        print_run(o, what, &f->prompt, f->prompt_tokens);
    } else {
        xm_lines_add(
            o,
            "  a prompt: not known, because the device's multiply rate is not known\n");
    }
    print_run(o, "  a token after it", &f->token, 1);
    xm_plan_print_alone(o, f, "  ");
    for (uint32_t i = 0; i < f->n; i++)
        if (i == 0 || !is_same(&f->rates[i], &f->rates[i - 1]))
            print_rates(o, &f->rates[i], f->names[i]);
}

static void
add_run(struct xm_json_out *j, yyjson_mut_val *parent, const char *name,
        const struct xm_run_seconds *s, uint64_t tokens)
{
    if (!(s->all > 0.0))
        return;
    yyjson_mut_val *o = xm_json_add_object(j, parent, name);
    xm_json_add_whole(j, o, "tokens", tokens);
    xm_json_add_real(j, o, "seconds", s->all);
    xm_json_add_real(j, o, "exchange_seconds", s->exchanges);
    xm_json_add_real(j, o, "tokens_per_second", (double)tokens / s->all);
}

void
xm_plan_add_forecast(struct xm_json_out *j, const struct xm_plan_forecast *f)
{
    static const char *const sources[] = {[XM_RATES_UNKNOWN] = "unknown",
                                          [XM_RATES_CARD] = "specifications",
                                          [XM_RATES_GIVEN] = "given",
                                          [XM_RATES_MEASURED] = "measured"};
    if (f->has_host_experts || !(f->token.all > 0.0))
        return;
    yyjson_mut_val *o = xm_json_add_object(j, NULL, "forecast");
    add_run(j, o, "prompt", &f->prompt, f->prompt_tokens);
    add_run(j, o, "token", &f->token, 1);
    if (f->alone) {
        yyjson_mut_val *alone = xm_json_add_object(j, o, "alone");
        xm_json_add_text(j, alone, "device", f->alone, strlen(f->alone));
        add_run(j, alone, "prompt", &f->alone_prompt, f->prompt_tokens);
        add_run(j, alone, "token", &f->alone_token, 1);
    }
    yyjson_mut_val *list = xm_json_add_array(j, o, "rates");
    for (uint32_t i = 0; i < f->n; i++) {
        const struct xm_rates *r = &f->rates[i];
        yyjson_mut_val *one = xm_json_add_object(j, list, NULL);
        xm_json_add_text(j, one, "device", f->names[i], strlen(f->names[i]));
        xm_json_add_text(j, one, "source", sources[r->source],
                         strlen(sources[r->source]));
        xm_json_add_real(j, one, "read", r->read);
        xm_json_add_real(j, one, "multiply", r->multiply);
        xm_json_add_bool(j, one, "beside_others", r->is_beside);
    }
}
