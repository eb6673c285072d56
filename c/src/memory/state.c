#include "memory/state.h"

#include <syncblob/mem.h>

#define CPU  SB_HEAD_AT_CPU
#define GPU  SB_HEAD_AT_GPU
#define BOTH SB_HEAD_SYNCED
#define NEW  SB_HEAD_UNINITIALIZED
#define LOST SB_HEAD_LOST

/* The columns are in the order of enum sb__call. Each row takes three lines of four columns. */
/* clang-format off */
static const struct sb__cell table[][SB__CALLS] = {
    [SB_HEAD_UNINITIALIZED] = {
        {SB__ZERO, CPU},      {SB__ZERO, CPU},     {SB__ZERO, GPU},      {SB__ZERO, GPU},
        {SB__ADOPT, CPU},     {SB__ADOPT, GPU},    {SB__ALLOC, CPU},     {SB__ALLOC, GPU},
        {SB__REFUSE, NEW},    {SB__REFUSE, NEW},   {SB__FREE, NEW},      {SB__FREE, NEW}},
    [SB_HEAD_AT_CPU] = {
        {SB__NOTHING, CPU},   {SB__NOTHING, CPU},  {SB__TRANSFER, BOTH}, {SB__TRANSFER, GPU},
        {SB__ADOPT, CPU},     {SB__ADOPT, GPU},    {SB__NOTHING, CPU},   {SB__ALLOC, GPU},
        {SB__TRANSFER, BOTH}, {SB__REFUSE, CPU},   {SB__REFUSE, CPU},    {SB__FREE, CPU}},
    [SB_HEAD_AT_GPU] = {
        {SB__TRANSFER, BOTH}, {SB__TRANSFER, CPU}, {SB__NOTHING, GPU},   {SB__NOTHING, GPU},
        {SB__ADOPT, CPU},     {SB__ADOPT, GPU},    {SB__ALLOC, CPU},     {SB__NOTHING, GPU},
        {SB__REFUSE, GPU},    {SB__TRANSFER, BOTH}, {SB__FREE, GPU},     {SB__REFUSE, GPU}},
    [SB_HEAD_SYNCED] = {
        {SB__NOTHING, BOTH},  {SB__NOTHING, CPU},  {SB__NOTHING, BOTH},  {SB__NOTHING, GPU},
        {SB__ADOPT, CPU},     {SB__ADOPT, GPU},    {SB__NOTHING, CPU},   {SB__NOTHING, GPU},
        {SB__NOTHING, BOTH},  {SB__NOTHING, BOTH}, {SB__FREE, GPU},      {SB__FREE, CPU}},
    [SB_HEAD_LOST] = {
        {SB__REFUSE, LOST},   {SB__REFUSE, LOST},  {SB__REFUSE, LOST},   {SB__REFUSE, LOST},
        {SB__ADOPT, CPU},     {SB__ADOPT, GPU},    {SB__ALLOC, CPU},     {SB__ALLOC, GPU},
        {SB__REFUSE, LOST},   {SB__REFUSE, LOST},  {SB__REFUSE, LOST},   {SB__REFUSE, LOST}},
};
/* clang-format on */

struct sb__cell sb__state(int32_t head, enum sb__call call) {
    return table[head][call];
}
