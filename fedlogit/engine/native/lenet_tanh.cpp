// LeNet-5 with tanh and average-pooling.

#include "tanh.h"

#define LENET_FORM MeanTanh
#define LENET(name) fedlogit_lenet_tanh_##name
#include "lenet.h"
