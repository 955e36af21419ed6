// A small network trained by the C++ frontend: the loss has to fall, and the gradients have to be what finite
// differences say. Exit status 0 where they are, 1 where they aren't.
#include <torch/torch.h>

#include <cstdlib>
#include <iostream>

struct Net : torch::nn::Module {
    Net() : inner(register_module("inner", torch::nn::Linear(4, 16))), outer(register_module("outer", torch::nn::Linear(16, 1))) {
        to(torch::kFloat64);
    }

    torch::Tensor forward(const torch::Tensor& x) {
        return outer(torch::tanh(inner(x)));
    }

    torch::nn::Linear inner, outer;
};

torch::Tensor loss_of(Net& net, const torch::Tensor& x, const torch::Tensor& y) {
    return torch::mse_loss(net.forward(x), y);
}

int main() {
    torch::manual_seed(0);
    const auto x = torch::randn({32, 4}, torch::kFloat64);
    const auto y = x.sum(1, true).sin();
    Net net;
    torch::optim::Adam optimizer(net.parameters(), 0.01);

    loss_of(net, x, y).backward();
    double slope = net.inner->weight.grad()[0][0].item<double>();
    // For trying the test itself: a wrong gradient on demand.
    if (std::getenv("WRONG") != nullptr) {
        slope += 1.0;
    }
    const double step = 1e-6;
    double ends[2];
    for (const int side : {0, 1}) {
        torch::NoGradGuard guard;
        net.inner->weight[0][0] += side == 0 ? -step : 2 * step;
        ends[side] = loss_of(net, x, y).item<double>();
    }
    const double measured = (ends[1] - ends[0]) / (2 * step);
    if (std::abs(measured - slope) > 1e-6) {
        std::cout << "MISMATCH gradient " << slope << ", by finite differences " << measured << std::endl;
        return 1;
    }

    const double before = loss_of(net, x, y).item<double>();
    for (int number = 0; number < 50; ++number) {
        optimizer.zero_grad();
        loss_of(net, x, y).backward();
        optimizer.step();
    }
    const double after = loss_of(net, x, y).item<double>();
    std::cout << "torch " << TORCH_VERSION << ": loss " << before << " -> " << after << std::endl;
    return after < before ? 0 : 1;
}
