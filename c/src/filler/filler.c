#include "filler/filler.h"

#include "base/error.h"
#include "base/options.h"
#include "port/root.h"

#include <math.h>
#include <stdio.h>

void sb_filler_init(sb_filler *filler, size_t struct_size) {
    const sb_filler defaults = SB_FILLER_INIT;
    if (filler)
        sb__give_struct(filler, struct_size, &defaults, sizeof defaults);
}

const char *sb_filler_type_name(sb_filler_type type) {
    static const char *const names[] = {"constant", "uniform", "gaussian", "positive_unitball",
                                        "xavier",   "msra",    "bilinear"};
    return type >= SB_FILLER_CONSTANT && type <= SB_FILLER_BILINEAR ? names[type] : "unknown";
}

/* --- parameters --------------------------------------------------------------------- */

static bool fail(struct sb__filler_fault *fault, uint32_t field, const char *format, double value) {
    fault->field = field;
    fault->other = 0;
    (void)snprintf(fault->text, sizeof fault->text, format, value);
    return false;
}

static bool check_enums(const sb_filler *f, struct sb__filler_fault *fault) {
    if (f->type < SB_FILLER_CONSTANT || f->type > SB_FILLER_BILINEAR)
        return fail(fault, SB__FILLER_TYPE, "type is %.0f, which is none of SB_FILLER_*", f->type);
    if (f->variance_norm < SB_VARIANCE_FAN_IN || f->variance_norm > SB_VARIANCE_AVERAGE)
        return fail(fault, SB__FILLER_VARIANCE_NORM,
                    "variance_norm is %.0f, which is none of FAN_IN, FAN_OUT and AVERAGE",
                    f->variance_norm);
    return true;
}

static bool check_range(const sb_filler *f, struct sb__filler_fault *fault) {
    if (!isfinite(f->min))
        return fail(fault, SB__FILLER_MIN, "min is %g, which is not finite", f->min);
    if (!isfinite(f->max))
        return fail(fault, SB__FILLER_MAX, "max is %g, which is not finite", f->max);
    fault->field = SB__FILLER_MIN;
    fault->other = SB__FILLER_MAX;
    const char *wrong = f->min > f->max              ? "above"
                        : !isfinite(f->max - f->min) ? "beyond the range of a double below"
                                                     : NULL;
    if (wrong)
        (void)snprintf(fault->text, sizeof fault->text, "min is %g, which is %s max, %g", f->min,
                       wrong, f->max);
    return !wrong;
}

static bool check_normal(const sb_filler *f, struct sb__filler_fault *fault) {
    if (!isfinite(f->mean))
        return fail(fault, SB__FILLER_MEAN, "mean is %g, which is not finite", f->mean);
    if (!isfinite(f->std))
        return fail(fault, SB__FILLER_STD, "std is %g, which is not finite", f->std);
    if (f->std < 0)
        return fail(fault, SB__FILLER_STD, "std is %g, which is negative", f->std);
    if (f->sparse < -1)
        return fail(fault, SB__FILLER_SPARSE, "sparse is %.0f, which is below -1", f->sparse);
    return true;
}

bool sb__filler_check(const sb_filler *f, struct sb__filler_fault *fault) {
    if (!check_enums(f, fault))
        return false;
    if (f->type == SB_FILLER_GAUSSIAN)
        return check_normal(f, fault);
    if (f->sparse != -1)
        return fail(fault, SB__FILLER_SPARSE, "sparse is %.0f, but only gaussian can be sparse",
                    f->sparse);
    if (f->type == SB_FILLER_UNIFORM)
        return check_range(f, fault);
    if (f->type == SB_FILLER_CONSTANT && isnan(f->value))
        return fail(fault, SB__FILLER_VALUE, "value is %g, which is not a number", f->value);
    return true;
}

/* --- shapes ------------------------------------------------------------------------- */

static sb_status check_bilinear(const struct sb__shape *shape, sb_error *err) {
    if (shape->num_axes != 4)
        return sb__fail(err, SB_ERR_SHAPE_MISMATCH, "bilinear needs 4 axes, the blob has %d",
                        shape->num_axes);
    if (shape->dims[2] != shape->dims[3])
        return sb__fail(err, SB_ERR_SHAPE_MISMATCH,
                        "bilinear needs square kernels, the blob's are %lld x %lld",
                        (long long)shape->dims[2], (long long)shape->dims[3]);
    return SB_OK;
}

/* Returns the first dimension (Caffe's `num`), or 1 for a scalar. */
static int64_t first_dim(const struct sb__shape *shape) {
    return shape->num_axes > 0 ? shape->dims[0] : 1;
}

sb_status sb__filler_check_shape(const sb_filler *filler, const struct sb__shape *shape,
                                 sb_error *err) {
    switch (filler->type) {
    case SB_FILLER_POSITIVE_UNITBALL:
    case SB_FILLER_XAVIER:
    case SB_FILLER_MSRA:
        if (shape->num_axes > 0)
            return SB_OK;
        return sb__fail(err, SB_ERR_SHAPE_MISMATCH, "%s needs at least one axis, the blob has none",
                        sb_filler_type_name(filler->type));
    case SB_FILLER_BILINEAR:
        return check_bilinear(shape, err);
    case SB_FILLER_GAUSSIAN:
        if (filler->sparse > first_dim(shape))
            return sb__fail(err, SB_ERR_INVALID_ARGUMENT,
                            "sparse is %d, which is above the first dimension, %lld",
                            filler->sparse, (long long)first_dim(shape));
        return SB_OK;
    default:
        return SB_OK;
    }
}

/* --- sequences ---------------------------------------------------------------------- */

static double fan(const sb_filler *filler, const struct sb__shape *shape) {
    const int64_t to_one = shape->count / shape->dims[0];
    const double inputs = (double)to_one;
    const double outputs =
        (double)(shape->num_axes > 1 ? shape->count / shape->dims[1] : shape->count);
    switch (filler->variance_norm) {
    case SB_VARIANCE_FAN_OUT:
        return outputs;
    case SB_VARIANCE_AVERAGE:
        return (inputs + outputs) / 2;
    default:
        return inputs;
    }
}

static void be_uniform(struct sb__random *random, double min, double max) {
    random->origin = min;
    random->scale = max - min;
}

static void be_normal(struct sb__random *random, double mean, double deviation) {
    random->normal = true;
    random->origin = mean;
    random->scale = deviation;
}

struct sb__random sb__filler_random(const sb_filler *filler, const struct sb__shape *shape,
                                    int32_t dtype, uint64_t seed) {
    struct sb__random random = {.seed = seed, .dtype = dtype, .keep = 1};
    switch (filler->type) {
    case SB_FILLER_UNIFORM:
        be_uniform(&random, filler->min, filler->max);
        break;
    case SB_FILLER_GAUSSIAN:
        be_normal(&random, filler->mean, filler->std);
        if (filler->sparse >= 0)
            random.keep = (double)filler->sparse / (double)first_dim(shape);
        break;
    case SB_FILLER_XAVIER: {
        const double bound = sb__sqrt(3 / fan(filler, shape));
        be_uniform(&random, -bound, bound);
        break;
    }
    case SB_FILLER_MSRA:
        be_normal(&random, 0, sb__sqrt(2 / fan(filler, shape)));
        break;
    default:
        be_uniform(&random, 0, 1);
    }
    return random;
}
