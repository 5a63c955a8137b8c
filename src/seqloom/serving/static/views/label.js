import { heading } from "../shared/states.js";
export const label = { name: "label", title: "label", available: () => false, show(place) { place.append(heading("label", "")); } };
