/* Interprets the PTX of the library's kernels. The threads of a launch run one after another. */
#include "driver.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STEPS  160
#define MAX_PARAMS 4
#define CLASS      16 /* registers of each class */
#define REGISTERS  (5 * CLASS)

#define INSTRUCTIONS(X)                                                                            \
    X(LD_PARAM, "ld.param.u64", TO = param(launch, s->name))                                       \
    X(CVTA, "cvta.to.global.u64", TO = A)                                                          \
    X(COPY_64, "mov.b64", TO = A)                                                                  \
    X(MOV_32, "mov.u32", TO = special(launch, s->name, block, thread))                             \
    X(MOV_F64, "mov.f64", TO = s->constant)                                                        \
    X(MUL_WIDE, "mul.wide.u32", TO = (uint64_t)(uint32_t)A * (uint32_t)B)                          \
    X(CVT_64, "cvt.u64.u32", TO = A)                                                               \
    X(ADD_64, "add.s64", TO = A + B)                                                               \
    X(SUB_64, "sub.s64", TO = A - B)                                                               \
    X(NEG_64, "neg.s64", TO = 0 - A)                                                               \
    X(AND_64, "and.b64", TO = A & s->constant)                                                     \
    X(MIN_64, "min.u64", TO = A < B ? A : B)                                                       \
    X(SHR_64, "shr.u64", TO = A >> s->constant)                                                    \
    X(SHL_64, "shl.b64", TO = A << s->constant)                                                    \
    X(SETP_GE, "setp.ge.u64", TO = A >= B)                                                         \
    X(LABEL, ":", (void)0)                                                                         \
    X(BRA, "bra", at = label_at(f, s->name))                                                       \
    X(LD_F32, "ld.global.f32", load(launch, &TO, A, 1, 4))                                         \
    X(LD_F64, "ld.global.f64", load(launch, &TO, A, 1, 8))                                         \
    X(LD_V4_F32, "ld.global.v4.f32", load(launch, &TO, A, 4, 4))                                   \
    X(LD_V2_F64, "ld.global.v2.f64", load(launch, &TO, A, 2, 8))                                   \
    X(CVT_F64, "cvt.f64.f32", TO = widen(A))                                                       \
    X(ABS_F64, "abs.f64", TO = bits_of(fabs(get_double(A))))                                       \
    X(ADD_F64, "add.f64", TO = bits_of(get_double(A) + get_double(B)))                             \
    X(FMA_F64, "fma.rn.f64", TO = bits_of(fma(get_double(A), get_double(B), get_double(C))))       \
    X(ST_F64, "st.global.f64", memcpy(reach(launch, TO, 8), &A, 8))                                \
    X(RET, "ret", return )
#define OPCODE(name, mnemonic, effect)   name,
#define MNEMONIC(name, mnemonic, effect) mnemonic,

enum opcode { INSTRUCTIONS(OPCODE) OPCODES };
static const char *const mnemonics[] = {INSTRUCTIONS(MNEMONIC)};

struct step {
    enum opcode opcode;
    bool guarded;
    int to, a, b, c;
    uint64_t constant;
    char name[24]; /* a parameter, a special register or a label */
};

struct CUfunc_st {
    CUcontext context;
    char name[32];
    char params[MAX_PARAMS][16];
    int param_count, step_count;
    struct step steps[MAX_STEPS];
    CUfunction next;
};

struct CUmod_st {
    CUfunction first;
};

static int register_of(const char *text) {
    static const char classes[] = "rfdlp";
    const char *class = text[0] == '%' && text[1] ? strchr(classes, text[1]) : NULL;
    if (!class || text[2] < '0' || text[2] > '9')
        return -1;
    return (int)(class - classes) * CLASS + atoi(text + 2);
}

/* Replaces a vector of consecutive registers, such as "{%f4, %f5}", by its first register. */
static void shorten_vector(char *line) {
    char *open = strchr(line, '{'), *comma = open ? strchr(open, ',') : NULL,
         *close = open ? strchr(open, '}') : NULL;
    if (!close || !comma)
        return;
    memmove(comma, close + 1, strlen(close));
    memmove(open, open + 1, strlen(open));
}

static bool read_step(CUfunction f, char *line) {
    struct step *step = &f->steps[f->step_count++];
    char mnemonic[24], operands[4][24] = {"", "", "", ""};
    if (strncmp(line, "@%p0 ", 5) == 0) {
        step->guarded = true;
        line += 5;
    }
    shorten_vector(line);
    int found = sscanf(line, "%23s %23[^,], %23[^,], %23[^,], %23[^,]", mnemonic, operands[0],
                       operands[1], operands[2], operands[3]);
    if (found < 1)
        return false;
    while (step->opcode < OPCODES && strcmp(mnemonics[step->opcode], mnemonic) != 0)
        step->opcode++;
    int *registers[] = {&step->to, &step->a, &step->b, &step->c};
    for (int i = 0; i < 4; i++) {
        char *text = operands[i][0] == '[' ? operands[i] + 1 : operands[i];
        text[strcspn(text, "]")] = 0;
        *registers[i] = register_of(text);
        if (*registers[i] >= 0 || !*text)
            continue;
        if (strncmp(text, "0d", 2) == 0)
            step->constant = strtoull(text + 2, NULL, 16);
        else if (*text >= '0' && *text <= '9')
            step->constant = strtoull(text, NULL, 10);
        else
            (void)snprintf(step->name, sizeof step->name, "%s", text);
    }
    return step->opcode < OPCODES;
}

static bool read_line(CUfunction f, char *line) {
    size_t length = strlen(line);
    if (!length || *line == '{' || strncmp(line, ".reg", 4) == 0)
        return true;
    if (f->step_count == MAX_STEPS)
        return false;
    if (line[length - 1] != ':')
        return read_step(f, line);
    struct step *label = &f->steps[f->step_count++];
    label->opcode = LABEL;
    (void)snprintf(label->name, sizeof label->name, "%.*s", (int)length - 1, line);
    return true;
}

static void read_params(CUfunction f, char *head) {
    for (char *p = strstr(head, ".u64 "); p && f->param_count < MAX_PARAMS;
         p = strstr(p, ".u64 ")) {
        p += 5;
        (void)snprintf(f->params[f->param_count++], sizeof f->params[0], "%.*s",
                       (int)strcspn(p, ",) \n"), p);
    }
}

static bool read_entry(CUfunction f, char *text) {
    char *body = strchr(text, '{'), *end = strstr(text, "\n}");
    if (!body || !end || !strchr(text, '('))
        return false;
    *end = *body++ = 0;
    (void)snprintf(f->name, sizeof f->name, "%.*s", (int)strcspn(text, "("), text);
    read_params(f, strchr(text, '('));
    for (char *rest = NULL, *line = strtok_r(body, ";\n", &rest); line;
         line = strtok_r(NULL, ";\n", &rest)) {
        line += strspn(line, " ");
        if (!read_line(f, line)) {
            fake_violation("the fake driver lacks the PTX line \"%s\"", line);
            return false;
        }
    }
    return true;
}

static CUresult read_module(CUmodule module, CUcontext context, char *text) {
    static const char entry[] = ".visible .entry ";
    if (strncmp(text, ".version ", 9) != 0 || !strstr(text, ".address_size 64"))
        return CUDA_ERROR_INVALID_PTX;
    for (char *p = strstr(text, entry), *next; p; p = next) {
        next = strstr(p + 1, entry);
        if (next)
            next[-1] = 0;
        CUfunction f = fake_object(sizeof *f);
        f->context = context;
        f->next = module->first;
        module->first = f;
        if (!read_entry(f, p + sizeof entry - 1))
            return CUDA_ERROR_INVALID_PTX;
    }
    return CUDA_SUCCESS;
}

static void drop_module(CUmodule module) {
    for (CUfunction next, f = module->first; f; f = next) {
        next = f->next;
        unload_kernel(f->context, f->name);
        fake_object_free(f);
    }
    fake_object_free(module);
}

struct launch {
    CUfunction function;
    uint64_t params[MAX_PARAMS];
    uint32_t blocks, threads;
    CUdeviceptr start, end;
    char *bytes;
};

static void *reach(struct launch *launch, CUdeviceptr ptr, size_t bytes) {
    static uint64_t nowhere[2];
    if (ptr < launch->start || ptr + bytes > launch->end) {
        struct block *block = find_block(ptr, bytes);
        if (!block || !block->ready) {
            fake_violation("a kernel uses %p, which is not allocated when it runs",
                           (void *)(uintptr_t)ptr);
            return nowhere;
        }
        launch->start = block->address;
        launch->end = block->address + block->bytes;
        launch->bytes = block->backing;
    }
    return launch->bytes + (ptr - launch->start);
}

static void load(struct launch *launch, uint64_t *to, CUdeviceptr ptr, size_t count, size_t size) {
    if (ptr % (count * size) != 0)
        fake_violation("a kernel loads %zu bytes at %p, which is not aligned", count * size,
                       (void *)(uintptr_t)ptr);
    const char *from = reach(launch, ptr, count * size);
    for (size_t i = 0; i < count; i++)
        memcpy(&to[i], from + i * size, size);
}

static int label_at(CUfunction f, const char *name) {
    for (int i = 0; i < f->step_count; i++)
        if (f->steps[i].opcode == LABEL && strcmp(f->steps[i].name, name) == 0)
            return i;
    fake_violation("a branch to %s, which is not a label", name);
    return f->step_count;
}

static uint64_t param(const struct launch *launch, const char *name) {
    for (int i = 0; i < launch->function->param_count; i++)
        if (strcmp(launch->function->params[i], name) == 0)
            return launch->params[i];
    fake_violation("a kernel has no parameter %s", name);
    return 0;
}

static uint32_t special(const struct launch *launch, const char *name, uint32_t block,
                        uint32_t thread) {
    if (strcmp(name, "%ctaid.x") == 0)
        return block;
    if (strcmp(name, "%tid.x") == 0)
        return thread;
    return strcmp(name, "%ntid.x") == 0 ? launch->threads : launch->blocks;
}

static double get_double(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t widen(uint64_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return bits_of((double)value);
}

#define TO r[s->to]
#define A  r[s->a]
#define B  r[s->b]
#define C  r[s->c]
#define RUN(name, mnemonic, effect)                                                                \
    case name:                                                                                     \
        effect;                                                                                    \
        break;

static void run_thread(struct launch *launch, uint32_t block, uint32_t thread) {
    CUfunction f = launch->function;
    uint64_t r[REGISTERS] = {0};
    for (int at = 0; at < f->step_count; at++) {
        const struct step *s = &f->steps[at];
        if (s->guarded && !r[register_of("%p0")])
            continue;
        switch (s->opcode) {
            INSTRUCTIONS(RUN)
        case OPCODES:
            return;
        }
    }
}

#undef TO
#undef A
#undef B
#undef C
#undef RUN

static void run_launch(void *user) {
    struct launch *launch = user;
    for (uint32_t block = 0; block < launch->blocks; block++)
        for (uint32_t thread = 0; thread < launch->threads; thread++)
            run_thread(launch, block, thread);
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image) {
    BEGIN(UNSAFE);
    char *text = need_memory(strdup(image));
    CUmodule made = fake_object(sizeof *made);
    const CUresult result = read_module(made, c.context, text);
    free(text);
    if (result) {
        drop_module(made);
        return result;
    }
    fake.live.modules++;
    *module = made;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleUnload(CUmodule module) {
    BEGIN(CONTEXT);
    fake.live.modules--;
    drop_module(module);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    BEGIN(CONTEXT);
    *function = module->first;
    while (*function && strcmp((*function)->name, name) != 0)
        *function = (*function)->next;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                unsigned int block_z, unsigned int shared, CUstream stream,
                                void **parameters, void **extra) {
    BEGIN(WORK);
    const bool is_line = grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1;
    if (!is_line || !grid_x || !block_x || block_x > 1024 || shared || extra)
        return CUDA_ERROR_INVALID_VALUE;
    if (function->context != c.context)
        return CUDA_ERROR_INVALID_HANDLE;
    const CUresult result = fake_load_kernel(c.context, function->name);
    if (result)
        return result;
    struct launch *launch = need_memory(malloc(sizeof *launch));
    *launch = (struct launch){.function = function, .blocks = grid_x, .threads = block_x};
    for (int i = 0; i < function->param_count; i++)
        memcpy(&launch->params[i], parameters[i], sizeof launch->params[i]);
    return enqueue(
        &c, stream,
        &(struct item){.operation = LAUNCH, .kernel = run_launch, .user = launch, .owned = true});
}
