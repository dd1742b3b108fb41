// LeNet-5 with ReLU and max-pooling.

#include "pools.h"

#define LENET_FORM MaxRelu
#define LENET(name) fedlogit_lenet_##name
#include "lenet.h"
