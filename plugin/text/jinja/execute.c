/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes statements, which write text and set names.
 *
 * Loops, macros, captured blocks and "with" have a scope of their own; "if" has none.
 */
#include "plugin/text/jinja/run_state.h"

#include "runtime/util/number.h"

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_node node;
typedef enum xm_status execute_fn(struct xm_jinja_run *r, node *n);

static enum xm_status
execute_text(struct xm_jinja_run *r, node *n)
{
    xm_strbuf_add_n(&r->out->text, n->name.text, n->name.n);
    return xm_jinja_check_size(r, r->out);
}

static enum xm_status
execute_print(struct xm_jinja_run *r, node *n)
{
    value v;
    XM_TRY(xm_jinja_evaluate(r, n->in[0], &v));
    r->at = n;
    return xm_jinja_print(r, v, r->out);
}

static enum xm_status
execute_if(struct xm_jinja_run *r, node *n)
{
    value test;
    XM_TRY(xm_jinja_evaluate(r, n->in[0], &test));
    return xm_jinja_execute(r, xm_jinja_truth(test) ? n->body : n->orelse);
}

static enum xm_status
enter_scope(struct xm_jinja_run *r)
{
    struct xm_jinja_frame *frame = NULL;
    XM_TRY(xm_jinja_alloc(r, 1, sizeof(*frame), &frame));
    frame->outer = r->frame;
    r->frame = frame;
    return XM_OK;
}

static void
leave_scope(struct xm_jinja_run *r)
{
    r->frame = r->frame->outer;
}

/* Executes name.attribute = v; only namespaces can be changed. */
static enum xm_status
assign_attribute(struct xm_jinja_run *r, node *target, value v)
{
    value of;
    XM_TRY(xm_jinja_evaluate(r, target->in[0], &of));
    if (of.kind != XM_JINJA_NAMESPACE)
        return xm_jinja_fail(r, "an attribute of %s cannot be set; expected a namespace",
                             xm_jinja_kind_name(of.kind));
    return xm_jinja_dict_put(r, of.dict, xm_jinja_text(target->name), v);
}

static enum xm_status
assign_one(struct xm_jinja_run *r, node *target, value v)
{
    return target->kind == XM_JINJA_ATTRIBUTE ? assign_attribute(r, target, v)
                                              : xm_jinja_bind(r, target->name, v);
}

static enum xm_status
assign(struct xm_jinja_run *r, node *target, value v)
{
    const struct xm_jinja_list *items = NULL;
    size_t n = 0, i = 0;
    r->at = target;
    if (target->kind != XM_JINJA_MAKE_TUPLE)
        return assign_one(r, target, v);
    XM_TRY(xm_jinja_iterate(r, v, &items));
    for (node *t = target->args; t; t = t->next)
        n++;
    if (n != items->n)
        return xm_jinja_fail(r, "%zu value%s cannot be assigned to %zu name%s", items->n,
                             xm_plural(items->n), n, xm_plural(n));
    for (node *t = target->args; t; t = t->next)
        XM_TRY(assign(r, t, items->items[i++]));
    return XM_OK;
}

static enum xm_status
execute_set(struct xm_jinja_run *r, node *n)
{
    value v;
    XM_TRY(xm_jinja_evaluate(r, n->in[1], &v));
    return assign(r, n->in[0], v);
}

enum xm_status
xm_jinja_capture(struct xm_jinja_run *r, node *list, value *out)
{
    struct xm_jinja_buffer text = {0}, *outside = r->out;
    XM_TRY(enter_scope(r));
    r->out = &text;
    enum xm_status status = xm_jinja_execute(r, list);
    r->out = outside;
    if (status != XM_OK) { /* the run has failed: the scope need not be restored */
        xm_jinja_buffer_free(&text);
        return status;
    }
    leave_scope(r);
    return xm_jinja_take_text(r, &text, out);
}

/* Sets *out to the text of the body after the filters in in[1]. */
static enum xm_status
filter_body(struct xm_jinja_run *r, node *n, value *out)
{
    value outside = r->captured, text;
    XM_TRY(xm_jinja_capture(r, n->body, &text));
    r->captured = text;
    XM_TRY(xm_jinja_evaluate(r, n->in[1], out));
    r->captured = outside;
    return XM_OK;
}

static enum xm_status
execute_set_block(struct xm_jinja_run *r, node *n)
{
    value v;
    XM_TRY(filter_body(r, n, &v));
    return assign(r, n->in[0], v);
}

static enum xm_status
execute_filter_block(struct xm_jinja_run *r, node *n)
{
    value v;
    XM_TRY(filter_body(r, n, &v));
    return xm_jinja_print(r, v, r->out);
}

/* Replaces *items by those for which the loop's condition holds. The condition sees the loop's
 * target, but not `loop`. */
static enum xm_status
select_items(struct xm_jinja_run *r, node *n, const struct xm_jinja_list **items)
{
    struct xm_jinja_list *kept = NULL;
    size_t n_kept = 0;
    XM_TRY(xm_jinja_new_list(r, (*items)->n, &kept));
    XM_TRY(enter_scope(r));
    for (size_t i = 0; i < (*items)->n; i++) {
        value test;
        XM_TRY(assign(r, n->in[0], (*items)->items[i]));
        XM_TRY(xm_jinja_evaluate(r, n->in[2], &test));
        if (xm_jinja_truth(test))
            kept->items[n_kept++] = (*items)->items[i];
    }
    leave_scope(r);
    kept->n = n_kept;
    *items = kept;
    return XM_OK;
}

static enum xm_status
run_round(struct xm_jinja_run *r, struct xm_jinja_loop *loop)
{
    XM_TRY(xm_jinja_charge(r, 1));
    XM_TRY(enter_scope(r));
    XM_TRY(xm_jinja_bind(r, xm_slice_of("loop", 4),
                         (value){.kind = XM_JINJA_LOOP, .loop = loop}));
    XM_TRY(assign(r, loop->node->in[0], loop->items->items[loop->index]));
    XM_TRY(xm_jinja_execute(r, loop->node->body));
    leave_scope(r);
    return XM_OK;
}

static enum xm_status
execute_inside(struct xm_jinja_run *r, node *list)
{
    XM_TRY(enter_scope(r));
    XM_TRY(xm_jinja_execute(r, list));
    leave_scope(r);
    return XM_OK;
}

static enum xm_status
run_loop(struct xm_jinja_run *r, node *n, value over, unsigned depth)
{
    const struct xm_jinja_list *items = NULL;
    struct xm_jinja_loop *loop = NULL;
    r->at = n;
    XM_TRY(xm_jinja_iterate(r, over, &items));
    if (n->in[2])
        XM_TRY(select_items(r, n, &items));
    XM_TRY(xm_jinja_alloc(r, 1, sizeof(*loop), &loop));
    *loop = (struct xm_jinja_loop){items, 0, depth, n, r->frame, NULL};
    bool completed = false; /* an iteration ran to its end: else Jinja runs "else" */
    for (enum xm_jinja_flow flow = XM_JINJA_GO_ON;
         loop->index < items->n && flow != XM_JINJA_LEAVE_LOOP; loop->index++) {
        XM_TRY(run_round(r, loop));
        flow = r->flow;
        r->flow = XM_JINJA_GO_ON;
        completed = completed || flow == XM_JINJA_GO_ON;
    }
    return completed ? XM_OK : execute_inside(r, n->orelse);
}

static enum xm_status
execute_for(struct xm_jinja_run *r, node *n)
{
    value v;
    XM_TRY(xm_jinja_evaluate(r, n->in[1], &v));
    return run_loop(r, n, v, 0);
}

enum xm_status
xm_jinja_call_loop(struct xm_jinja_run *r, const struct xm_jinja_loop *loop,
                   const struct xm_jinja_args *args, value *out)
{
    struct xm_jinja_frame *inside = r->frame;
    struct xm_jinja_buffer text = {0}, *outside = r->out;
    if (!loop->node->is_recursive)
        return xm_jinja_fail(r, "loop() can be called only in a recursive loop");
    if (args->n != 1 || args->n_positional != 1)
        return xm_jinja_fail(r, "loop() takes one argument, the items");
    r->frame = loop->scope;
    r->out = &text;
    const enum xm_status s = run_loop(r, loop->node, args->values[0], loop->depth + 1);
    r->out = outside;
    r->frame = inside;
    if (s == XM_OK)
        return xm_jinja_take_text(r, &text, out);
    xm_jinja_buffer_free(&text);
    return s;
}

static enum xm_status
new_macro(struct xm_jinja_run *r, node *n, struct xm_jinja_function **out)
{
    XM_TRY(xm_jinja_alloc(r, 1, sizeof(**out), out));
    (*out)->macro = n;
    (*out)->scope = r->frame;
    return XM_OK;
}

static enum xm_status
execute_macro(struct xm_jinja_run *r, node *n)
{
    struct xm_jinja_function *macro = NULL;
    XM_TRY(new_macro(r, n, &macro));
    return xm_jinja_bind(r, n->name,
                         (value){.kind = XM_JINJA_FUNCTION, .function = macro});
}

static enum xm_status
execute_call_block(struct xm_jinja_run *r, node *n)
{
    struct xm_jinja_function *caller = NULL;
    value v;
    XM_TRY(new_macro(r, n->in[1], &caller));
    XM_TRY(xm_jinja_call(r, n->in[0], caller, &v));
    return xm_jinja_print(r, v, r->out);
}

/* Executes "with". Its values are evaluated outside of the new scope, so they do not see each
 * other's names. */
static enum xm_status
execute_with(struct xm_jinja_run *r, node *n)
{
    struct xm_jinja_frame *outside = r->frame;
    XM_TRY(enter_scope(r));
    struct xm_jinja_frame *inside = r->frame;
    for (node *set = n->args; set; set = set->next) {
        value v;
        r->frame = outside;
        XM_TRY(xm_jinja_evaluate(r, set->in[1], &v));
        r->frame = inside;
        XM_TRY(assign(r, set->in[0], v));
    }
    XM_TRY(xm_jinja_execute(r, n->body));
    leave_scope(r);
    return XM_OK;
}

static enum xm_status
execute_generation(struct xm_jinja_run *r, node *n)
{
    return execute_inside(r, n->body);
}

static enum xm_status
execute_do(struct xm_jinja_run *r, node *n)
{
    value ignored;
    return xm_jinja_evaluate(r, n->in[0], &ignored);
}

static enum xm_status
execute_break(struct xm_jinja_run *r, node *n)
{
    (void)n;
    r->flow = XM_JINJA_LEAVE_LOOP;
    return XM_OK;
}

static enum xm_status
execute_continue(struct xm_jinja_run *r, node *n)
{
    (void)n;
    r->flow = XM_JINJA_NEXT_ROUND;
    return XM_OK;
}

static execute_fn *const executors[XM_JINJA_N_NODES] = {
    [XM_JINJA_TEXT] = execute_text,
    [XM_JINJA_PRINT] = execute_print,
    [XM_JINJA_IF] = execute_if,
    [XM_JINJA_DO] = execute_do,
    [XM_JINJA_FOR] = execute_for,
    [XM_JINJA_SET] = execute_set,
    [XM_JINJA_SET_BLOCK] = execute_set_block,
    [XM_JINJA_FILTER_BLOCK] = execute_filter_block,
    [XM_JINJA_MACRO] = execute_macro,
    [XM_JINJA_CALL_BLOCK] = execute_call_block,
    [XM_JINJA_WITH] = execute_with,
    [XM_JINJA_GENERATION] = execute_generation,
    [XM_JINJA_BREAK] = execute_break,
    [XM_JINJA_CONTINUE] = execute_continue,
};

enum xm_status
xm_jinja_execute(struct xm_jinja_run *r, node *list)
{
    XM_TRY(xm_jinja_enter(r));
    for (node *n = list; n && r->flow == XM_JINJA_GO_ON; n = n->next) {
        r->at = n;
        XM_TRY(xm_jinja_charge(r, 1));
        XM_TRY(executors[n->kind](r, n));
    }
    r->depth--;
    return XM_OK;
}
