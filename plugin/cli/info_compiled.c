/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the facts in a compiled model's file: model, device, options, and the files that it
 * needs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/info.h"
#include "plugin/cli/quantity.h"
#include "plugin/program_util/lines.h"

enum xm_status
xm_info_model_of(const struct xm_import *from, struct xm_strbuf *out,
                 struct xm_error *err)
{
    static const char weights[] = ".bin", graph[] = ".xml";
    XM_TRY(xm_blob_model_file(from, out, err));
    const size_t n = out->n, e = sizeof(weights) - 1;
    if (xm_strbuf_ok(out) && n > e && strcmp(out->text + n - e, weights) == 0)
        memcpy(out->text + n - e, graph, e);
    return xm_strbuf_ok(out) ? XM_OK : xm_no_memory(err, "a path");
}

/* Called with each line of a text, without its newline. */
typedef void (*line_fn)(const char *line, size_t n, void *ctx);

static void
for_lines(const char *text, line_fn fn, void *ctx)
{
    while (*text) {
        const size_t n = strcspn(text, "\n");
        if (n)
            fn(text, n, ctx);
        text += n + (text[n] == '\n');
    }
}

/* Counts a line "name skipped progress nodes". */
static void
count_pass(const char *line, size_t n, void *ctx)
{
    const char *space = memchr(line, ' ', n);
    uint64_t *counts = ctx;
    counts[0]++;
    counts[1] += space && (size_t)(space - line) + 3 < n && space[3] == '1';
}

/* ---- text ---------------------------------------------------------------------------- */

struct printing {
    struct xm_lines *o;
    const char *label;
    char between; /* separates a line's first word from the rest */
};

static void
print_line(const char *line, size_t n, void *ctx)
{
    struct printing *p = ctx;
    struct xm_strbuf copy = {0}, shown = {0};
    xm_strbuf_add_n(&copy, line, n);
    char *space = xm_strbuf_ok(&copy) ? strchr(copy.text, ' ') : NULL;
    if (space)
        *space = p->between;
    xm_cli_add_name(&shown, xm_strbuf_text(&copy));
    xm_lines_add(p->o, "%-14s%s\n", p->label, xm_strbuf_text(&shown));
    p->label = "";
    xm_strbuf_free(&copy);
    xm_strbuf_free(&shown);
}

static void
print_files(struct xm_lines *o, const struct xm_blob_facts *f)
{
    char bytes[XM_CLI_QUANTITY];
    for (uint64_t i = 0; i < f->n_files; i++) {
        struct xm_strbuf path = {0};
        xm_cli_add_name(&path, f->files[i].path);
        xm_lines_add(o, "%-14s%s, %s\n", i ? "" : "refers to", xm_strbuf_text(&path),
                     xm_cli_bytes_text(f->files[i].n_bytes, bytes));
        xm_strbuf_free(&path);
    }
}

void
xm_info_print_blob(const struct xm_blob_facts *f)
{
    struct xm_lines o = xm_lines_to(stdout);
    char a[XM_CLI_QUANTITY], b[XM_CLI_QUANTITY], c[XM_CLI_QUANTITY];
    uint64_t passes[2] = {0};
    struct printing identity = {&o, "compiled by", ' '}, options = {&o, "options", '='};
    for_lines(f->passes, count_pass, passes);
    for_lines(f->identity, print_line, &identity);
    for_lines(f->config, print_line, &options);
    xm_lines_add(&o, "%-14s%" PRIu64 ", of which %" PRIu64 " changed the graph\n",
                 "passes", passes[0], passes[1]);
    xm_lines_add(&o, "%-14s%s: constants %s, %" PRIu64 " kernels %s\n", "compiled file",
                 xm_cli_bytes_text(f->n_bytes, a),
                 xm_cli_bytes_text(f->constant_bytes, b), f->kernels,
                 xm_cli_bytes_text(f->kernel_bytes, c));
    print_files(&o, f);
    xm_lines_end(&o);
}

/* ---- JSON ---------------------------------------------------------------------------- */

struct adding {
    struct xm_json_out *j;
    yyjson_mut_val *o;
};

/* Adds a line "name value". */
static void
add_pair(const char *line, size_t n, void *ctx)
{
    const struct adding *a = ctx;
    char key[64];
    const char *space = memchr(line, ' ', n);
    const size_t k = space ? (size_t)(space - line) : n;
    if (k >= sizeof(key))
        return;
    memcpy(key, line, k);
    key[k] = '\0';
    xm_json_add_text(a->j, a->o, key, space ? space + 1 : "", space ? n - k - 1 : 0);
}

void
xm_info_add_blob(struct xm_json_out *j, const struct xm_blob_facts *f)
{
    uint64_t passes[2] = {0};
    yyjson_mut_val *o = xm_json_add_object(j, NULL, "compiled");
    struct adding identity = {j, xm_json_add_object(j, o, "by")};
    struct adding options = {j, xm_json_add_object(j, o, "options")};
    for_lines(f->identity, add_pair, &identity);
    for_lines(f->config, add_pair, &options);
    for_lines(f->passes, count_pass, passes);
    xm_json_add_whole(j, o, "passes", passes[0]);
    xm_json_add_whole(j, o, "passes_with_progress", passes[1]);
    xm_json_add_parts(j, o, "notes", f->notes, "\n");
    xm_json_add_whole(j, o, "bytes", f->n_bytes);
    xm_json_add_whole(j, o, "constant_bytes", f->constant_bytes);
    xm_json_add_whole(j, o, "kernels", f->kernels);
    xm_json_add_whole(j, o, "kernel_bytes", f->kernel_bytes);
    yyjson_mut_val *files = xm_json_add_array(j, o, "files");
    for (uint64_t i = 0; i < f->n_files; i++) {
        yyjson_mut_val *file = xm_json_add_object(j, files, NULL);
        xm_json_add_text(j, file, "path", f->files[i].path, strlen(f->files[i].path));
        xm_json_add_whole(j, file, "bytes", f->files[i].n_bytes);
    }
}
