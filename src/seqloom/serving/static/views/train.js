import { heading } from "../shared/states.js";
export const train = { name: "train", title: "train", available: () => false, show(place) { place.append(heading("train", "")); } };
