"""NeMo Gym starts this file: see `configs/codea1.yaml`."""

from codea1_env.adapters.nemo_gym import SeatServer

if __name__ == "__main__":
    SeatServer.run_webserver()
