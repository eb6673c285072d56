/**
 * sb_filler: Caffe's fillers (FillerParameter), which write a blob's initial values. Random numbers
 * are counter-based. In the default floating-point environment (base.h) an element depends only on
 * the seed, its index and the element type (positive_unitball: also on its row). An element does
 * not depend on the machine or on the number of threads of the context's parallel_for.
 *
 *     sb_filler filler = SB_FILLER_INIT;
 *     filler.type = SB_FILLER_XAVIER;
 *     st = sb_blob_fill(weights, &filler, 42, &err);
 */
#ifndef SYNCBLOB_FILLER_H
#define SYNCBLOB_FILLER_H

#include <syncblob/blob.h>

SB_BEGIN_DECLS

/** The type of a filler, SB_FILLER_*. */
typedef int32_t sb_filler_type;

/** The meaning of n for xavier and msra, SB_VARIANCE_*. */
typedef int32_t sb_variance;

/** The type of a filler. In the formulas, `variance_norm` defines n (SB_VARIANCE_*). */
enum {
    SB_FILLER_CONSTANT = 0,          /**< each element is `value` */
    SB_FILLER_UNIFORM = 1,           /**< uniform on [min, max] */
    SB_FILLER_GAUSSIAN = 2,          /**< normal; with `sparse`, mostly zeros */
    SB_FILLER_POSITIVE_UNITBALL = 3, /**< uniform on (0, 1), then each row (axis 0) is divided by
                                          its sum */
    SB_FILLER_XAVIER = 4,            /**< uniform on [-a, a], a = sqrt(3 / n) */
    SB_FILLER_MSRA = 5,              /**< normal, mean 0, variance 2 / n */
    SB_FILLER_BILINEAR = 6           /**< the weights of bilinear upsampling; no random numbers */
};

/** The meaning of n for xavier and msra. In a shape (d0, d1, ...), each output has count / d0
 *  inputs. Each input has count / d1 outputs, or count outputs if there is only one axis. */
enum {
    SB_VARIANCE_FAN_IN = 0,  /**< the number of inputs of each output */
    SB_VARIANCE_FAN_OUT = 1, /**< the number of outputs of each input */
    SB_VARIANCE_AVERAGE = 2  /**< the mean of the numbers of inputs and outputs */
};

/** FillerParameter. Start from SB_FILLER_INIT. A double member that the filler's type does not use
 *  may have any value, even NaN. An unused `variance_norm` must be one of SB_VARIANCE_*. An unused
 *  `sparse` must be -1. */
typedef struct sb_filler {
    size_t struct_size;        /**< sizeof(sb_filler) of the caller */
    sb_filler_type type;       /**< SB_FILLER_* */
    sb_variance variance_norm; /**< used by xavier and msra. Must be one of SB_VARIANCE_* for every
                                    filler */
    double value;              /**< constant: the value; may be infinite */
    double min;                /**< uniform: the least value */
    double max;                /**< uniform: the greatest value */
    double mean;               /**< gaussian: the mean */
    double std;                /**< gaussian: the standard deviation */
    int32_t sparse;   /**< gaussian: an element is nonzero with the probability sparse / d0. -1: no
                           element is made zero. Must be -1 for all other fillers */
    int32_t reserved; /**< 0 for all types */
} sb_filler;

/** The defaults of FillerParameter as an initialiser: constant 0. */
#define SB_FILLER_INIT                                                                             \
    { sizeof(sb_filler), SB_FILLER_CONSTANT, SB_VARIANCE_FAN_IN, 0, 0, 1, 0, 1, -1, 0 }

/** Writes the defaults of FillerParameter.
 *  @param filler [nullable]
 *  @param struct_size sizeof(sb_filler) of the caller, stored in the struct. Members that the
 *      library does not know become zero */
SB_API void sb_filler_init(sb_filler *filler, size_t struct_size);

/** Returns the name that FillerParameter gives a type ("positive_unitball"), or "unknown" for a
 *  number that is not a type.
 *  @return [borrowed] static text. */
SB_API const char *sb_filler_type_name(sb_filler_type type);

/** Reads a FillerParameter message (type 1, value 2, min 3, max 4, mean 5, std 6, sparse 7,
 *  variance_norm 8). Missing fields have their defaults. If a field is repeated, the last value
 *  counts. Unknown fields are skipped.
 *  @param bytes [borrowed, nullable when size is 0]
 *  @param out the caller sets `struct_size` (SB_FILLER_INIT). The call writes at most `struct_size`
 *      bytes
 *  Errors: ABI_MISMATCH (a struct_size of no known version), MALFORMED (also an unknown type, and
 *  parameters that are invalid for blobs of every shape), DATA_LIMIT. */
SB_API SB_MUST_CHECK sb_status sb_filler_parse(const void *bytes, size_t size, sb_filler *out,
                                               sb_error *err);

/** Fills the blob's data on the host (Filler::Fill). Values are computed as double and rounded to
 *  the element type. The call copies nothing from the device. A blob of count 0 stays unchanged,
 *  and the call checks neither its shape nor `sparse`. Use a different seed for each blob: equal
 *  seeds produce equal numbers.
 *  @param filler [borrowed]
 *  Errors: INVALID_ARGUMENT (an unknown type; an unknown variance_norm; a nonzero `reserved`; a
 *  used parameter that is NaN, or is infinite and not `value`; min > max; max - min that is not a
 *  finite double; std < 0; sparse below -1, above d0, or set for another type than gaussian),
 *  UNSUPPORTED (not F32 or F64; an unknown tail that is not zero), ABI_MISMATCH (a struct_size of
 *  no known version), SHAPE_MISMATCH (positive_unitball, xavier and msra need an axis; bilinear
 *  needs four, with equal extents of the last two), OUT_OF_MEMORY, CAP_REACHED, UNINITIALIZED (a
 *  LOST memory that is larger than the blob), DEVICE_FAILURE, DEVICE_LOST, FORKED. */
SB_API SB_MUST_CHECK sb_status sb_blob_fill(sb_blob *blob, const sb_filler *filler, uint64_t seed,
                                            sb_error *err);

SB_END_DECLS

#endif
