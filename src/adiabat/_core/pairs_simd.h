/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Steps of pair_descent. One pass over the rows brings r up to date and finds who rises, a second
 * finds the partner.
 */
#ifndef ADIABAT_PAIRS_SIMD_H
#define ADIABAT_PAIRS_SIMD_H

#include <math.h>

#include "pairs.h"
#include "simd.h"
#include "simd_math.h"

enum { PAIRS_TOGETHER = 4 }; /* rows of kernel values read side by side */

ALWAYS_INLINE double vec_largest(vec a)
{
    double lane[VEC], most;
    vec_store(lane, a);
    most = lane[0];
    for (int l = 1; l < VEC; l++)
        most = lane[l] > most ? lane[l] : most;
    return most;
}

/* r += (a - b) move; best[block] = the largest -r of those that can rise. Returns the largest r of
 * those that can fall. */
NEVER_INLINE double pairs_update(const pair_descent *p, const double *a, const double *b,
                                 double move)
{
    const vec step = vec_setall(move), zero = vec_zero();
    vec high = vec_setall(-INFINITY);
    for (ptrdiff_t start = 0; start < p->n; start += PAIRS_BLOCK) {
        vec low = vec_setall(-INFINITY);
        for (ptrdiff_t i = start; i < start + PAIRS_BLOCK; i += VEC) {
            vec change = vec_mul(vec_sub(vec_load(a + i), vec_load(b + i)), step);
            vec rise = vec_add(vec_load(p->rise + i), change);
            vec fall = vec_add(vec_load(p->fall + i), change);
            vec_store(p->rise + i, rise);
            vec_store(p->fall + i, fall);
            low = vec_max(low, vec_sub(zero, rise));
            high = vec_max(high, fall);
        }
        p->best[start / PAIRS_BLOCK] = vec_largest(low);
    }
    return vec_largest(high);
}

/* The same without a change of r. */
NEVER_INLINE double pairs_extremes(const pair_descent *p)
{
    vec high = vec_setall(-INFINITY);
    for (ptrdiff_t start = 0; start < p->n; start += PAIRS_BLOCK) {
        vec low = vec_setall(-INFINITY);
        for (ptrdiff_t i = start; i < start + PAIRS_BLOCK; i += VEC) {
            low = vec_max(low, vec_sub(vec_zero(), vec_load(p->rise + i)));
            high = vec_max(high, vec_load(p->fall + i));
        }
        p->best[start / PAIRS_BLOCK] = vec_largest(low);
    }
    return vec_largest(high);
}

/* What rows i .. i + VEC would gain by falling while `up`, at r, rises; 0 for those that differ by no
 * more than the tolerance, which would never bring it to its end. */
ALWAYS_INLINE vec pairs_gain(const pair_descent *p, const double *row, vec r, vec own, vec flat,
                             ptrdiff_t i)
{
    vec diff = vec_sub(vec_load(p->fall + i), r);
    vec both = vec_add(own, vec_load(p->diagonal + i));
    vec twice = vec_load(row + i);
    vec curvature = vec_sub(both, vec_add(twice, twice));
    vec none = vec_muladd(flat, both, vec_setall(1e-300));
    vec gain = vec_div(vec_mul(diff, diff), vec_max(curvature, none));
    return vec_unless_below(gain, diff, vec_setall(p->tolerance));
}

/* The row that gains most; its block is looked at again. */
NEVER_INLINE ptrdiff_t pairs_partner(const pair_descent *p, ptrdiff_t up)
{
    const double *row = p->row[up];
    const vec r = vec_setall(p->rise[up]), own = vec_setall(p->diagonal[up]);
    const vec flat = vec_setall(p->flat);
    double most = -1.0, gain[PAIRS_BLOCK];
    ptrdiff_t where = 0;
    for (ptrdiff_t start = 0; start < p->n; start += PAIRS_BLOCK) {
        vec best = vec_zero();
        for (ptrdiff_t i = start; i < start + PAIRS_BLOCK; i += VEC)
            best = vec_max(best, pairs_gain(p, row, r, own, flat, i));
        double here = vec_largest(best);
        if (here > most) {
            most = here;
            where = start;
        }
    }
    for (ptrdiff_t i = 0; i < PAIRS_BLOCK; i += VEC)
        vec_store(gain + i, pairs_gain(p, row, r, own, flat, where + i));
    for (ptrdiff_t i = 0; i < PAIRS_BLOCK; i++)
        if (gain[i] == most)
            return where + i;
    return where;
}

/* The row that most wants to rise. */
ALWAYS_INLINE ptrdiff_t pairs_riser(const pair_descent *p, double *lowest)
{
    ptrdiff_t block = 0;
    for (ptrdiff_t k = 1; k < p->n / PAIRS_BLOCK; k++)
        if (p->best[k] > p->best[block])
            block = k;
    *lowest = -p->best[block];
    for (ptrdiff_t i = block * PAIRS_BLOCK; i < (block + 1) * PAIRS_BLOCK; i++)
        if (p->rise[i] == *lowest)
            return i;
    return 0;
}

/* u of a row is new; so is how it can move. `below` is r as it is below the kink. */
ALWAYS_INLINE void pairs_place(pair_descent *p, ptrdiff_t i, double u, double below)
{
    p->u[i] = u;
    p->rise[i] = u >= p->hi[i] ? INFINITY : u < p->kink[i] ? below : below + p->jump[i];
    p->fall[i] = u <= p->lo[i] ? -INFINITY : u > p->kink[i] ? below + p->jump[i] : below;
}

/* The pair moves, and lands on a bound or a kink exactly. Returns by how much. */
ALWAYS_INLINE double pairs_move(pair_descent *p, ptrdiff_t up, ptrdiff_t down)
{
    double u_up = p->u[up], u_down = p->u[down], r_up = p->rise[up], r_down = p->fall[down];
    double both = p->diagonal[up] + p->diagonal[down];
    double curvature = both - 2.0 * p->row[up][down];
    double top = u_up < p->kink[up] ? p->kink[up] : p->hi[up];
    double bottom = u_down > p->kink[down] ? p->kink[down] : p->lo[down];
    double room_up = top - u_up, room_down = u_down - bottom;
    double move = room_up < room_down ? room_up : room_down;
    double wish = (r_down - r_up) / curvature;
    if (curvature > p->flat * both + 1e-300 && wish < move)
        move = wish;
    pairs_place(p, up, move < room_up ? u_up + move : top,
                u_up < p->kink[up] ? r_up : r_up - p->jump[up]);
    pairs_place(p, down, move < room_down ? u_down - move : bottom,
                u_down > p->kink[down] ? r_down - p->jump[down] : r_down);
    return move;
}

/* Rows between their ends move together, and those that land on an end do so exactly. */
static void pairs_move_together(pair_descent *p, const long long *rows, const double *u,
                                ptrdiff_t k)
{
    for (ptrdiff_t first = 0; first < k; first += PAIRS_TOGETHER) {
        const double *row[PAIRS_TOGETHER];
        vec move[PAIRS_TOGETHER];
        for (int j = 0; j < PAIRS_TOGETHER; j++) {
            ptrdiff_t at = rows[first + j < k ? first + j : first];
            row[j] = p->row[at];
            move[j] = vec_setall(first + j < k ? u[first + j] - p->u[at] : 0.0);
        }
        for (ptrdiff_t i = 0; i < p->n; i += VEC) {
            vec change = vec_mul(vec_load(row[0] + i), move[0]);
            for (int j = 1; j < PAIRS_TOGETHER; j++)
                change = vec_muladd(vec_load(row[j] + i), move[j], change);
            vec_store(p->rise + i, vec_add(vec_load(p->rise + i), change));
            vec_store(p->fall + i, vec_add(vec_load(p->fall + i), change));
        }
    }
    for (ptrdiff_t j = 0; j < k; j++) {
        double r = p->rise[rows[j]];
        pairs_place(p, rows[j], u[j], p->u[rows[j]] < p->kink[rows[j]] ? r : r - p->jump[rows[j]]);
    }
}

/* Steps until it is done, or to pause, or no steps are left, or the row returned is wanted. */
static ptrdiff_t pairs_descend(pair_descent *p)
{
    double lowest, highest = pairs_extremes(p);
    for (;;) {
        ptrdiff_t up = pairs_riser(p, &lowest);
        p->span = highest - lowest;
        if (!(p->span > p->tolerance))
            return PAIRS_DONE;
        if (p->steps <= 0)
            return PAIRS_LIMIT;
        if (p->steps <= p->pause)
            return PAIRS_PAUSE;
        if (p->row[up] == NULL)
            return up;
        ptrdiff_t down = pairs_partner(p, up);
        if (p->row[down] == NULL)
            return down;
        double move = pairs_move(p, up, down);
        highest = pairs_update(p, p->row[up], p->row[down], move);
        p->steps--;
    }
}

#endif
