import { heading } from "../shared/states.js";
export const lab = { name: "lab", title: "lab", available: () => false, show(place) { place.append(heading("lab", "")); } };
