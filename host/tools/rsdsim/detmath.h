/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Logarithm and exponential whose last digit does not depend on the machine.
 *
 * C libraries differ there, and one differing digit is another address and
 * another run from there on. These use additions, multiplications and divisions
 * of IEEE doubles alone, which every machine rounds the same, in a fixed order;
 * the Makefile forbids the compiler to fuse them. Good to about 1e-15.
 */
#ifndef RSDSIM_DETMATH_H
#define RSDSIM_DETMATH_H

/* Natural logarithm of a normal number above 0 */
double det_log(double x);

/* e^x for -700 < x < 700 */
double det_exp(double x);

/* log(1 + x) for x > -1, also near 0 */
double det_log1p(double x);

/* e^x - 1, also near 0 */
double det_expm1(double x);

#endif
