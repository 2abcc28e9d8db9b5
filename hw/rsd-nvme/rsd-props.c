/*
 * The settings of core/api/rsd-props.h as properties of the device, each with
 * its default, range and description for -device rsd-ns,help.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor-impl.h"
#include "rsd-ns.h"
#include "core/api/rsd-units.h"

/*
 * Says whether the visitor has a number. QMP and JSON give a number; -device
 * and -global give text.
 */
static bool rsd_prop_is_number(Visitor *v, const char *name)
{
    GenericAlternate *value = NULL;
    bool number;

    /* The visitor of -global has text only, and no alternates. */
    if (!v->start_alternate ||
        !visit_start_alternate(v, name, &value, sizeof(*value), NULL)) {
        return false;
    }
    number = value->type == QTYPE_QNUM;
    visit_end_alternate(v, (void **)&value);
    g_free(value);
    return number;
}

bool rsd_visit_ns(Visitor *v, const char *name, uint64_t *ns, Error **errp)
{
    g_autofree char *text = NULL;

    if (rsd_prop_is_number(v, name)) {
        return visit_type_uint64(v, name, ns, errp);
    }
    if (!visit_type_str(v, name, &text, errp)) {
        return false;
    }
    if (!rsd_parse_ns(text, ns)) {
        error_setg(errp, "'%s' is '%s', must be " RSD_NS_FORM ", such as 25us",
                   name, text);
        return false;
    }
    return true;
}

static void rsd_prop_get_ns(Object *obj, Visitor *v, const char *name,
                            void *opaque, Error **errp)
{
    visit_type_uint64(v, name, object_field_prop_ptr(obj, opaque), errp);
}

static void rsd_prop_set_ns(Object *obj, Visitor *v, const char *name,
                            void *opaque, Error **errp)
{
    rsd_visit_ns(v, name, object_field_prop_ptr(obj, opaque), errp);
}

static void rsd_prop_default_ns(ObjectProperty *op, const Property *prop)
{
    object_property_set_default_uint(op, prop->defval.u);
}

const PropertyInfo rsd_prop_ns = {
    .type = "uint64",
    .get = rsd_prop_get_ns,
    .set = rsd_prop_set_ns,
    .set_default_value = rsd_prop_default_ns,
};

static bool rsd_prop_settable(Object *obj, const RsdProp *prop, Error **errp)
{
    if (DEVICE(obj)->realized) {
        error_setg(errp, "'%s' cannot be changed while the drive is in use",
                   prop->name);
        return false;
    }
    return true;
}

static void rsd_prop_store(Object *obj, const RsdProp *prop, uint64_t value)
{
    RsdNamespace *rs = RSD_NS(obj);

    *rsd_prop_value(&rs->cfg, prop) = value;
    rs->set[prop - rsd_props] = true;
}

static void rsd_prop_get_num(Object *obj, Visitor *v, const char *name,
                             void *opaque, Error **errp)
{
    RsdNamespace *rs = RSD_NS(obj);
    const RsdProp *prop = opaque;
    uint64_t value = *rsd_prop_value(&rs->cfg, prop);

    visit_type_uint64(v, name, &value, errp);
}

static void rsd_prop_set_num(Object *obj, Visitor *v, const char *name,
                             void *opaque, Error **errp)
{
    const RsdProp *prop = opaque;
    uint64_t value;

    if (!rsd_prop_settable(obj, prop, errp)) {
        return;
    }
    if (prop->kind == RSD_PROP_SIZE) {
        if (!visit_type_size(v, name, &value, errp)) {
            return;
        }
    } else if (!strcmp(prop->unit, "ns")) {
        if (!rsd_visit_ns(v, name, &value, errp)) {
            return;
        }
    } else if (!visit_type_uint64(v, name, &value, errp)) {
        return;
    }
    if (value < prop->min || value > prop->max) {
        g_autofree char *given = value > INT64_MAX
                                 ? g_strdup_printf("%" PRId64, (int64_t)value)
                                 : g_strdup_printf("%" PRIu64, value);

        error_setg(errp, "'%s' is %s, must be from %" PRIu64 " to %" PRIu64
                   "%s%s (%s)", name, given, prop->min, prop->max,
                   *prop->unit ? " " : "", prop->unit, prop->doc);
        return;
    }
    rsd_prop_store(obj, prop, value);
}

static char *rsd_prop_choices(const RsdProp *prop)
{
    return g_strjoinv(", ", (char **)prop->names);
}

static char *rsd_prop_get_enum(const RsdNamespace *rs, const RsdProp *prop)
{
    return g_strdup(prop->names[*rsd_prop_value((RsdConfig *)&rs->cfg, prop)]);
}

static void rsd_prop_visit_enum(Object *obj, Visitor *v, const char *name,
                                void *opaque, Error **errp)
{
    g_autofree char *value = rsd_prop_get_enum(RSD_NS(obj), opaque);

    visit_type_str(v, name, &value, errp);
}

static void rsd_prop_set_enum(Object *obj, Visitor *v, const char *name,
                              void *opaque, Error **errp)
{
    const RsdProp *prop = opaque;
    g_autofree char *value = NULL;
    g_autofree char *choices = NULL;

    if (!rsd_prop_settable(obj, prop, errp) ||
        !visit_type_str(v, name, &value, errp)) {
        return;
    }
    for (int i = 0; prop->names[i]; i++) {
        if (!strcmp(prop->names[i], value)) {
            rsd_prop_store(obj, prop, i);
            return;
        }
    }
    choices = rsd_prop_choices(prop);
    error_setg(errp, "'%s' is '%s', must be one of: %s (%s)", name, value,
               choices, prop->doc);
}

void rsd_ns_class_add_props(ObjectClass *oc)
{
    for (size_t i = 0; i < rsd_num_props; i++) {
        const RsdProp *prop = &rsd_props[i];
        g_autofree char *desc = NULL;

        if (prop->kind == RSD_PROP_ENUM) {
            g_autofree char *choices = rsd_prop_choices(prop);

            desc = g_strdup_printf("%s (%s; default %s)", prop->doc, choices,
                                   prop->names[prop->dflt]);
            object_class_property_add(oc, prop->name, "str",
                                      rsd_prop_visit_enum, rsd_prop_set_enum,
                                      NULL, (void *)prop);
        } else {
            desc = g_strdup_printf("%s (%" PRIu64 " to %" PRIu64 "%s%s; "
                                   "default %" PRIu64 ")", prop->doc,
                                   prop->min, prop->max,
                                   *prop->unit ? " " : "", prop->unit,
                                   prop->dflt);
            object_class_property_add(oc, prop->name,
                                      prop->kind == RSD_PROP_SIZE ?
                                      "size" : "uint64",
                                      rsd_prop_get_num, rsd_prop_set_num,
                                      NULL, (void *)prop);
        }
        object_class_property_set_description(oc, prop->name, desc);
    }
}
