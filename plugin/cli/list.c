/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe list: the models below a folder, and which of them fit on a device.
 */
#include "plugin/cli/list.h"
#include "plugin/cli/plan_command.h"

#include <stdio.h>
#include <unistd.h>

#include "plugin/cli/chip.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/progress.h"
#include "plugin/program_util/terminal.h"

struct args {
    struct xm_chip_args chip;
    const char *folder;
    bool json;
};

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    XM_CLI_GROUP("The device for which memory is counted", "xemoe list ~/models --device-as bmg -c 8192"),
    XM_CHIP_DEVICE_ROWS,
    XM_CHIP_CONTEXT_ROW,
    XM_CLI_GROUP("Output", "xemoe list ~/models --json"),
    { 0,   "json",      XM_CLI_FLAG,  AT(json),      NULL,   "print the result as one JSON object" },
};
#undef AT
/* clang-format on */

/* Finds the device. Models are listed without any device, but a device that was named must
 * exist. */
static int
find_device(const struct xm_chip_args *a, struct xm_list_wish *out)
{
    struct xm_error err = {0};
    *out = (struct xm_list_wish){.context = a->context, .memory = a->memory << 20};
    out->has_device =
        xm_cli_find_chip(a->device, a->device_as, &out->device, &err) == XM_OK;
    if (out->has_device || !(a->device || a->device_as))
        return XM_EXIT_OK;
    return xm_cli_no_device("-d", a->device, &err);
}

/* Prints whose memory is used: a card without memory of its own uses a computer's memory, which
 * need not be this computer's. */
static void
say_whose_memory(const struct xm_chip_args *a, const struct xm_list_wish *wish)
{
    struct xm_memory_room room;
    char why[XM_CLI_WARNING];
    if (!a->device_as || a->memory || !wish->has_device)
        return;
    xm_planner_room(&wish->device, NULL, &room);
    if (room.known && room.host_is_device)
        xm_say("the memory of this computer is assumed, because %s",
               xm_plan_no_memory(a->device_as, why));
}

static int
run(const struct args *a, const struct xm_list_wish *wish)
{
    struct xm_list list;
    struct xm_error err = {0};
    enum xm_status s = xm_list_find(a->folder, &list, &err);
    for (size_t i = 0; i < list.n && s == XM_OK; i++) {
        xm_progress_show("%zu of %zu: %s", i + 1, list.n, list.rows[i].path);
        xm_list_look(a->folder, wish, &list.rows[i]);
    }
    xm_progress_clear();
    if (s == XM_OK && a->json)
        s = xm_list_print_json(&list, a->folder, wish, &err);
    else if (s == XM_OK && list.n)
        xm_list_print(&list, wish, xm_terminal_line(STDOUT_FILENO));
    const int code = s == XM_OK ? xm_cli_flush() : xm_cli_failed(&err);
    if (s == XM_OK && list.n)
        say_whose_memory(&a->chip, wish);
    if (s == XM_OK && list.n == 0)
        xm_say("there is no model in or below '%s'", a->folder);
    if (s == XM_OK && list.is_cut)
        xm_say("'%s' has too many files: some are not listed", a->folder);
    xm_list_free(&list);
    return code;
}

int
xm_cli_list(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe list FOLDER [-d NAME] [-c N] [options]",
        .about = "Lists the models in and below a folder: GGUF files (also split ones), "
                 "folders of\nOpenVINO IR, and files of 'xemoe compile'. Prints for each "
                 "model its family,\nparameters, size, the format of most of its "
                 "weights, and whether it fits on the\ndevice, as 'xemoe plan' counts. A "
                 "model that cannot be read is listed with the\nreason.\n",
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
        .operand = "FOLDER",
        .operand_offset = offsetof(struct args, folder),
    };
    struct args a = {0};
    struct xm_list_wish wish;
    bool done;
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (!done)
        code = xm_cli_check_chip(&a.chip);
    if (done || code != XM_EXIT_OK)
        return code;
    code = find_device(&a.chip, &wish);
    return code == XM_EXIT_OK ? run(&a, &wish) : code;
}
